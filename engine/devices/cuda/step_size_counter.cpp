#include "engine/devices/cuda/step_size_counter.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>

namespace offprof {
namespace {

enum class NodeMode : std::uint8_t { kNone, kPlain, kMakesGraph };

/// Mode of the innermost node that runs on this thread.
thread_local NodeMode node_mode = NodeMode::kNone;

class ObservedNode final : public at::ObserverContext {
 public:
  ObservedNode()
      : outer_(std::exchange(node_mode,
                             at::GradMode::is_enabled() ? NodeMode::kMakesGraph : NodeMode::kPlain)) {}
  ~ObservedNode() override { node_mode = outer_; }
  ObservedNode(const ObservedNode&) = delete;
  ObservedNode& operator=(const ObservedNode&) = delete;

 private:
  NodeMode outer_;
};

/// Returns true for a table of positions: one with a column for each head, as of relative positions, or one
/// that is looked up as a whole for all samples.
bool is_of_positions(const at::Tensor& weight, const at::Tensor& indices) {
  constexpr std::int64_t kFewestColumns = 32;
  return weight.dim() != 2 || weight.size(1) < kFewestColumns ||
         (indices.size(0) == 1 && indices.numel() == weight.size(0));
}

}  // namespace

void StepSizeCounter::begin_op(const at::RecordFunction& op) {
  constexpr std::int64_t kFewestDimensions = 2;
  if (std::string_view(op.name()) != "aten::embedding" || node_mode != NodeMode::kNone) return;
  const auto inputs = op.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return;
  const at::Tensor &weight = inputs[0].toTensor(), &indices = inputs[1].toTensor();
  if (!weight.defined() || !weight.has_storage() || indices.dim() < kFewestDimensions) return;
  if (is_of_positions(weight, indices)) return;
  const std::lock_guard turn(mutex_);
  Lookups& lookups = lookups_[weight.storage().unsafeGetStorageImpl()];
  lookups.is_of_batches = lookups.is_of_batches || indices.size(0) > 1;
  lookups.rows = weight.size(0);
  lookups.tokens += indices.numel();
}

std::int64_t StepSizeCounter::take_tokens() {
  const std::lock_guard turn(mutex_);
  const std::map<const void*, Lookups> taken = std::exchange(lookups_, {});
  const auto rank = [](const auto& entry) {
    const Lookups& lookups = entry.second;
    return std::tuple(lookups.is_of_batches, lookups.rows, lookups.tokens);
  };
  const auto of_largest = std::ranges::max_element(taken, {}, rank);
  return of_largest == taken.end() ? 0 : of_largest->second.tokens;
}

std::unique_ptr<at::ObserverContext> StepSizeCounter::begin_node() {
  return std::make_unique<ObservedNode>();
}

bool StepSizeCounter::is_computing_again() {
  return node_mode == NodeMode::kPlain && at::GradMode::is_enabled();
}

}  // namespace offprof
