#include "engine/devices/virtual_gpu/work/op_family.h"

#include <algorithm>
#include <iterator>

#include "engine/devices/virtual_gpu/work/op_work.h"

namespace offprof {
namespace {

constexpr std::string_view kPrefix = "aten::", kCollectives = "c10d::";

/// Operators whose kernels go through rows: softmax, norms, losses.
constexpr std::string_view kRowOperators[] = {
    "_log_softmax",     "_log_softmax_backward_data", "_softmax",           "_softmax_backward_data",
    "_fused_rms_norm",  "_fused_rms_norm_backward",   "native_layer_norm",  "native_layer_norm_backward",
    "nll_loss_forward", "nll_loss_backward",          "nll_loss2d_forward", "nll_loss2d_backward"};

/// Operators that go through their operands once, element by element, or sum them up, as RMSNorm written in
/// PyTorch does. In place (`add_`) they have the same names but for the end.
constexpr std::string_view kElementwise[] = {"abs",
                                             "add",
                                             "addcdiv",
                                             "addcmul",
                                             "bitwise_not",
                                             "cat",
                                             "clamp",
                                             "clone",
                                             "copy",
                                             "cos",
                                             "div",
                                             "eq",
                                             "exp",
                                             "fill",
                                             "ge",
                                             "gelu",
                                             "gelu_backward",
                                             "gt",
                                             "le",
                                             "lerp",
                                             "log",
                                             "lt",
                                             "masked_fill",
                                             "mean",
                                             "mul",
                                             "native_dropout",
                                             "native_dropout_backward",
                                             "ne",
                                             "neg",
                                             "pow",
                                             "reciprocal",
                                             "relu",
                                             "rsqrt",
                                             "rsub",
                                             "sigmoid",
                                             "sigmoid_backward",
                                             "silu",
                                             "silu_backward",
                                             "sin",
                                             "sqrt",
                                             "sub",
                                             "sum",
                                             "tanh",
                                             "tanh_backward",
                                             "threshold_backward",
                                             "tril",
                                             "triu",
                                             "where",
                                             "zero"};

/// Optimizers and the like, which do so for lists of tensors.
constexpr std::string_view kElementwiseLists[] = {"_foreach_", "_fused_adam", "_fused_sgd", "_fused_adagrad",
                                                  "_amp_foreach_"};

template <std::size_t kCount>
bool is_one_of(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_elementwise(std::string_view name) {
  if (std::any_of(std::begin(kElementwiseLists), std::end(kElementwiseLists),
                  [&](std::string_view begin) { return name.starts_with(begin); }))
    return true;
  if (name.ends_with('_')) name.remove_suffix(1);
  return is_one_of(kElementwise, name);
}

}  // namespace

std::string_view family_of(std::string_view op) {
  switch (kind_of(op)) {
    case OpKind::kProduct:
      return "products";
    case OpKind::kAttention:
      return "attention";
    case OpKind::kConvolution:
      return "other";
    case OpKind::kMovesMemory:
      break;
  }
  if (op.starts_with(kCollectives)) return "collectives";
  if (!op.starts_with(kPrefix)) return "other";
  op.remove_prefix(kPrefix.size());
  if (is_one_of(kRowOperators, op)) return "row_operators";
  return is_elementwise(op) ? "elementwise" : "other";
}

}  // namespace offprof
