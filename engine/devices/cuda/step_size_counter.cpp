#include "engine/devices/cuda/step_size_counter.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
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

}  // namespace

void StepSizeCounter::begin_op(const at::RecordFunction& op) {
  constexpr std::int64_t kFewestDimensions = 2;
  if (std::string_view(op.name()) != "aten::embedding" || node_mode != NodeMode::kNone) return;
  const auto inputs = op.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return;
  const at::Tensor &weight = inputs[0].toTensor(), &indices = inputs[1].toTensor();
  if (!weight.defined() || !weight.has_storage() || indices.dim() < kFewestDimensions) return;
  const std::lock_guard turn(mutex_);
  tokens_[weight.storage().unsafeGetStorageImpl()] += indices.numel();
}

std::int64_t StepSizeCounter::take_tokens() {
  const std::lock_guard turn(mutex_);
  std::int64_t most = 0;
  for (const auto& [weight, tokens] : std::exchange(tokens_, {})) most = std::max(most, tokens);
  return most;
}

std::unique_ptr<at::ObserverContext> StepSizeCounter::begin_node() {
  return std::make_unique<ObservedNode>();
}

bool StepSizeCounter::is_computing_again() {
  return node_mode == NodeMode::kPlain && at::GradMode::is_enabled();
}

}  // namespace offprof
