#include "engine/devices/cuda/router_choice.h"

#include <ATen/Functions.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string_view>

#include "engine/devices/cuda/values_on_cpu.h"

namespace offprof {
namespace {

/// Chooses `count` of the experts in each row of the scores.
at::Tensor choose(const at::Tensor& scores, std::int64_t count, bool has_last_dimension) {
  const OnlyTheCpu guard;
  const std::int64_t experts = scores.size(-1);
  std::vector<std::int64_t> sizes = scores.sizes().vec();
  sizes.back() = count;
  if (!has_last_dimension) sizes.pop_back();
  return at::arange(scores.numel() / experts * count, at::TensorOptions(at::kLong))
      .remainder(experts)
      .reshape(sizes);
}

bool is_last_dimension(const at::Tensor& tensor, const c10::IValue& dimension) {
  return dimension.isInt() && (dimension.toInt() == -1 || dimension.toInt() == tensor.dim() - 1);
}

}  // namespace

std::vector<at::Tensor> balanced_choices(const at::RecordFunction& op) {
  const std::string_view name = op.name();
  const auto inputs = op.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor()) return {};
  const at::Tensor& scores = inputs[0].toTensor();
  if (!scores.defined() || !scores.is_cuda() || !is_plain(scores) || !scores.is_floating_point() ||
      scores.dim() < 2 || scores.numel() == 0)
    return {};
  if (name == "aten::topk" && inputs.size() >= 3 && inputs[1].isInt() && is_last_dimension(scores, inputs[2]))
    return {at::Tensor(), choose(scores, inputs[1].toInt(), true)};
  const bool is_max = name == "aten::max", is_argmax = name == "aten::argmax";
  if ((!is_max && !is_argmax) || inputs.size() < 3 || !is_last_dimension(scores, inputs[1])) return {};
  const at::Tensor choices = choose(scores, 1, inputs[2].isBool() && inputs[2].toBool());
  return is_max ? std::vector{at::Tensor(), choices} : std::vector{choices};
}

}  // namespace offprof
