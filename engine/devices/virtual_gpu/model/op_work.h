#pragma once

#include <cstdint>
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
};

/// An operator call. The result is not known yet when its kernels are launched.
struct OpCall {
  std::string_view name{};  ///< `aten::addmm`
  /// Its tensors in the order of the arguments. Lists are flattened.
  std::vector<OperandShape> operands{};
  bool is_causal = false;  ///< attention in which no position sees a later one
};

/// A product of [rows, inner] and [inner, columns], `batch` times.
struct ProductShape {
  double rows = 0, columns = 0, inner = 0, batch = 1;
};

/// Attention that does not store its scores.
struct AttentionShape {
  double positions = 0;  ///< of keys
  double width = 0;      ///< of a query of one head
  bool is_causal = false, is_backward = false;
};

/// Work of an operator call on a device.
struct OpWork {
  /// of matrix products and convolutions; 0 for other operators, which memory bounds
  double flops = 0;
  Bytes bytes = 0;           ///< read and written, each operand once
  std::string_view dtype{};  ///< dtype of the computation: that of its operands, or `tf32`
  /// a matrix product or convolution, which uses tensor cores if they support the dtype
  bool tensor_cores = false;
  std::optional<ProductShape> product{};
  std::optional<AttentionShape> attention{};
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
/// of them if it is causal; other masks are not known. float32 is computed as float32 in matrix products and
/// as tf32 in convolutions, which are PyTorch's defaults (docs, "CUDA semantics", TensorFloat-32). All other
/// operators move memory: each operand once, the allocated bytes, and, for in-place operators, the bytes that
/// they write.
OpWork work_of(const OpCall& op, Bytes allocated);

/// Returns true if the operator reads only some rows of its first operand, no more bytes than it returns.
bool gathers(std::string_view name);

/// Returns the bytes that an operator without tensor cores reads a second time, such as a batch norm, which
/// takes moments first.
Bytes read_again(const OpCall& op);

}  // namespace offprof
