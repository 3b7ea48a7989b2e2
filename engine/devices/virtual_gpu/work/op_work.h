#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// A tensor operand of an operator call.
struct OperandShape {
  std::string_view dtype{};  ///< named as in traces: `float32`, `int64`, ...
  std::vector<std::int64_t> sizes{};
  /// of the memory that the tensor covers: broadcast elements count once, and a tensor that is the operand
  /// before it too counts 0
  Bytes bytes = 0;
  Bytes element_bytes = 0;
  /// in memory, from an element to the next one along the last dimension; 0 if that is broadcast
  Bytes step_bytes = 0;

  double elements() const {
    return std::accumulate(sizes.begin(), sizes.end(), 1.0, [](double product, std::int64_t size) {
      return product * static_cast<double>(size);
    });
  }
  /// Returns true if elements along the last dimension are not adjacent, as in a transposed matrix, or in
  /// images whose channels come last.
  bool is_transposed() const { return step_bytes > element_bytes; }
};

/// An operator call. The result is not known yet when its kernels are launched.
struct OpCall {
  std::string_view name{};  ///< `aten::addmm`
  /// Its tensors in the order of the arguments. Lists are flattened.
  std::vector<OperandShape> operands{};
  std::size_t list_length =
      0;                   ///< tensors of its first list, for operators on lists (`_foreach_`, `_fused_`)
  bool is_causal = false;  ///< attention in which no position sees a later one
  bool has_mask = false;   ///< attention that adds a tensor to its scores
  bool uses_tf32 = false;  ///< a product or convolution: float32 operands may be rounded to tf32
  /// of a convolution's backward: of how many of its input and its weight the gradient is asked for
  double gradients = 2;
  /// allocations within it do not count for the operator around it: it is none of the program
  bool is_apart = false;
  bool is_computed_again = false;  ///< by backward, as in a checkpointed module
  bool is_of_python = false;       ///< of a Python program, whose launches take HostTimes::launch_ns more
};

/// A product of [rows, inner] and [inner, columns], `batch` times.
struct ProductShape {
  double rows = 0, columns = 0, inner = 0, batch = 1;
  /// The rows of its operands and of its result begin at multiples of so many elements: 8, 4, 2 or 1.
  std::int64_t aligned_elements = 8;
  /// In neither operand are the elements adjacent that are multiplied and added, as in the gradient of a
  /// weight.
  bool sums_apart = false;
};

/// Attention that does not store its scores.
struct AttentionShape {
  double queries = 0, positions = 0;  ///< of a sequence; positions are those of its keys
  double width = 0;                   ///< of a query of one head
  bool is_causal = false, is_backward = false;
  bool has_mask = false;  ///< a tensor, which says nothing about what need not be computed
  bool is_cudnn = false;  ///< by cuDNN's kernels
  /// read and written by kernels before and after those of backward: the sum over results times their
  /// gradients, and the gradients of queries, added up in float32
  Bytes beside_backward_bytes = 0;
};

/// Convolution by cuDNN, which computes products of parts of images with filters. For images whose channels
/// do not come last, kernels of their own bring its operands into that order and its result back, unless
/// filters of one pixel let it multiply them as they are.
///
/// A convolution in groups is computed as one of blocks of channels: with products that no filter asks for.
struct ConvolutionShape {
  ProductShape product{};          ///< of forward
  double pixels = 0;               ///< of its images, or as many for each block of channels
  double images = 1;               ///< that are multiplied one by one
  double channels = 0;             ///< of a filter, or of a block
  double computed_operations = 1;  ///< for each that counts
  double gradients = 0;  ///< of a backward pass: that of the weight, and one more for that of the images
  bool is_of_matrices = false;  ///< filters have one pixel, and each pixel of an image counts
  bool has_channels_last = false;
  Bytes skipped_bytes = 0;    ///< of images whose channels come last, between the pixels of a stride
  Bytes reordered_bytes = 0;  ///< read and written by kernels that reorder
  double reordered_elements = 0;
  double reorders = 0;  ///< kernels
};

/// Work of an operator call on a device.
struct OpWork {
  /// of matrix products, convolutions and attention; 0 for other operators, which memory bounds
  double flops = 0;
  Bytes bytes = 0;           ///< read and written, each operand once
  std::string_view dtype{};  ///< dtype of the computation: that of its operands, or `tf32`
  /// a matrix product or convolution, which uses tensor cores if they support the dtype
  bool tensor_cores = false;
  std::optional<ProductShape> product{};
  std::optional<AttentionShape> attention{};
  std::optional<ConvolutionShape> convolution{};

  bool has_16_bits() const { return dtype == "bfloat16" || dtype == "float16"; }
};

/// Kind of an operator, which determines how its work is counted.
enum class OpKind : std::uint8_t { kProduct, kConvolution, kAttention, kMovesMemory };

OpKind kind_of(std::string_view name);

/// Returns the work of an operator call. `allocated` is the device bytes that the operator has allocated so
/// far, including its results, without workspaces of cuBLAS.
///
/// A product of [m,k] and [k,n] takes 2 m k n operations: one multiplication and one addition each. A
/// convolution takes 2 for each pair of an output element and an element of one filter. Attention takes 2
/// products (its backward 5, as counted by Dao 2023, "FlashAttention-2") over all pairs of positions, or half
/// of them if it is causal; other masks are computed in full. float32 is computed as tf32 if the call allows
/// that. All other operators move memory: each operand once, the allocated bytes, and, for in-place
/// operators, the bytes that they write.
OpWork work_of(const OpCall& op, Bytes allocated);

/// Returns the elements of one filter of a weight [outputs, inputs / groups, kernel..], or transposed
/// [inputs, outputs / groups, kernel..].
double filter_elements(const OperandShape& weight);

/// Returns true if the operator overwrites its first operand without reading it.
bool is_overwriting(std::string_view name);

/// Returns true if the operator reads only some rows of its first operand, no more bytes than it returns.
bool gathers(std::string_view name);

}  // namespace offprof
