#include "engine/devices/virtual_gpu/model/time_ranges.h"

#include <algorithm>
#include <iterator>

#include "engine/devices/virtual_gpu/model/op_work.h"

namespace offprof {
namespace {

struct FamilyRange {
  std::string_view family;
  TimeFactors factors;
};

/// Ranges of products, row operators and elementwise operators: at least nine of ten rows of
/// tests/published/liger_a100.csv lie in them, with the constants fitted to the other operators of that table
/// (tests/published/leave_one_out.py, which reads the numbers from this file; docs/results/validation.md has
/// its output).
///
/// No published row has the others:
/// - attention: its rates were read off FlashAttention-2's figures for long sequences on two cards, and other
///   kernels (efficient, cuDNN) are not told apart. Assumed.
/// - other (convolutions, gathers, scatters, sorts, kernels that are not known): bytes or operations are
///   counted from the operands. A model of that kind was off by 53 % on average on kernels that nobody had
///   looked at, and took them to be 1.4 times as fast as they are (geometric mean of 92 published rows of
///   Liger-Kernel: RoPE, embedding, squared ReLU, KL divergence).
constexpr FamilyRange kKernels[] = {{"products", {0.90, 1.15}},
                                    {"row_operators", {0.85, 1.20}},
                                    {"elementwise", {0.80, 1.60}},
                                    {"attention", {0.70, 1.40}},
                                    {"other", {0.60, 2.50}}};

/// 5 us a launch is assumed. Liger-Kernel's rows that do not depend on the size of their tensors have 10 us a
/// kernel on the host of an H100 (2026), and 14 to 19 us in forward and backward on that of an A100 (2024); a
/// launch alone takes 4 to 6 us.
constexpr TimeFactors kHost = {0.8, 3.8};

/// nvbandwidth reaches 24.8 to 26.8 GB/s over PCI Express 4.0 and 55.6 to 57.3 GB/s over 5.0, in one
/// direction at a time, of 25 and 50 or 55 in the profiles. With copies in the other direction at the same
/// time, a direction reaches 51 over 5.0 and 11 to 24 over 4.0 (NVIDIA/nvbandwidth README and issues 15 and
/// 53; tinygrad/open-gpu-kernel-modules#29).
constexpr TimeFactors kCopies = {0.9, 1.35};

constexpr std::string_view kPrefix = "aten::";

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
  if (!op.starts_with(kPrefix)) return "other";
  op.remove_prefix(kPrefix.size());
  if (is_one_of(kRowOperators, op)) return "row_operators";
  return is_elementwise(op) ? "elementwise" : "other";
}

TimeFactors kernel_factors(std::string_view family) {
  const auto* const found = std::find_if(std::begin(kKernels), std::end(kKernels),
                                         [&](const FamilyRange& range) { return range.family == family; });
  return found == std::end(kKernels) ? std::prev(std::end(kKernels))->factors : found->factors;
}

TimeFactors host_factors() {
  return kHost;
}

TimeFactors copy_factors() {
  return kCopies;
}

}  // namespace offprof
