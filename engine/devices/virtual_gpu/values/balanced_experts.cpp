#include "engine/devices/virtual_gpu/values/balanced_experts.h"

#include <functional>
#include <numeric>

namespace offprof {
namespace {

std::int64_t elements_of(const OperandShape& operand) {
  return std::accumulate(operand.sizes.begin(), operand.sizes.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

void BalancedExperts::begin_op(const OpCall& op) {
  if (depth_ > 0) {
    ++depth_;
    return;
  }
  if (op.operands.empty()) return;
  const OperandShape& operand = op.operands.front();
  if (op.name == "aten::topk" && operand.sizes.size() == 2) {
    tokens_ = operand.sizes[0];
    experts_ = operand.sizes[1];
    next_expert_ = 0;
  }
  if (op.name == "aten::nonzero" && tokens_ > 0 && experts_ > 0) begin_nonzero(elements_of(operand));
}

void BalancedExperts::begin_nonzero(std::int64_t elements) {
  depth_ = 1;
  result_ = nullptr;
  awaits_result_ = false;
  finds_experts_ = elements == experts_;
  count_.reset();
  if (finds_experts_) {
    count_ = experts_;
  } else if (elements % tokens_ == 0 && elements / tokens_ <= experts_) {
    count_ = elements / experts_ + (next_expert_ < elements % experts_ ? 1 : 0);
    next_expert_ = (next_expert_ + 1) % experts_;
  }
}

std::optional<BalancedExperts::Contents> BalancedExperts::end_op() {
  if (depth_ == 0 || --depth_ > 0) return std::nullopt;
  count_.reset();
  if (!finds_experts_ || result_ == nullptr) return std::nullopt;
  Contents contents{result_, std::vector<std::int64_t>(static_cast<std::size_t>(experts_))};
  std::iota(contents.numbers.begin(), contents.numbers.end(), std::int64_t{0});
  return contents;
}

std::optional<std::int64_t> BalancedExperts::read_number() {
  awaits_result_ = count_.has_value();
  return count_;
}

void BalancedExperts::block_allocated(const void* block) {
  if (!awaits_result_) return;
  result_ = block;
  awaits_result_ = false;
}

}  // namespace offprof
