#include "profiler/recorder/recomputable_ops.h"

#include <algorithm>
#include <array>

namespace offprof {
namespace {

constexpr std::array kOps = std::to_array<std::string_view>({
    // Elementwise operators.
    "aten::abs",
    "aten::add",
    "aten::addcdiv",
    "aten::addcmul",
    "aten::ceil",
    "aten::clamp",
    "aten::clamp_max",
    "aten::clamp_min",
    "aten::cos",
    "aten::div",
    "aten::elu",
    "aten::erf",
    "aten::exp",
    "aten::expm1",
    "aten::floor",
    "aten::gelu",
    "aten::glu",
    "aten::hardsigmoid",
    "aten::hardswish",
    "aten::hardtanh",
    "aten::leaky_relu",
    "aten::lerp",
    "aten::log",
    "aten::log1p",
    "aten::log_sigmoid_forward",
    "aten::masked_fill",
    "aten::maximum",
    "aten::minimum",
    "aten::mish",
    "aten::mul",
    "aten::neg",
    "aten::pow",
    "aten::reciprocal",
    "aten::relu",
    "aten::round",
    "aten::rsqrt",
    "aten::rsub",
    "aten::sigmoid",
    "aten::sign",
    "aten::silu",
    "aten::sin",
    "aten::softplus",
    "aten::sqrt",
    "aten::sub",
    "aten::tanh",
    "aten::threshold",
    "aten::trunc",
    "aten::where",
    // Masks.
    "aten::bitwise_and",
    "aten::bitwise_not",
    "aten::bitwise_or",
    "aten::eq",
    "aten::ge",
    "aten::gt",
    "aten::le",
    "aten::logical_and",
    "aten::logical_not",
    "aten::logical_or",
    "aten::lt",
    "aten::ne",
    // Constant tensors.
    "aten::arange",
    "aten::full",
    "aten::ones",
    "aten::zeros",
    // Conversions of types and layouts.
    "aten::_to_copy",
    "aten::clone",
    "aten::constant_pad_nd",
    "aten::tril",
    "aten::triu",
    // Operators on rows and windows.
    "aten::_fused_rms_norm",
    "aten::_log_softmax",
    "aten::_softmax",
    "aten::avg_pool2d",
    "aten::embedding",
    "aten::max_pool2d_with_indices",
    "aten::mean",
    "aten::native_group_norm",
    "aten::native_layer_norm",
    "aten::sum",
    "aten::upsample_nearest2d",
});

}  // namespace

bool is_recomputable(std::string_view op) {
  return std::ranges::find(kOps, op) != kOps.end();
}

}  // namespace offprof
