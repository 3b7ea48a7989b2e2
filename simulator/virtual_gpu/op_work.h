#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// A tensor that an operator was called with.
struct OperandShape {
  std::string_view dtype{};  ///< as traces name it: `float32`, `int64`, ...
  std::vector<std::int64_t> sizes{};
  Bytes bytes = 0;
};

/// An operator as it was called. What it returns is not known yet when its kernels are launched.
struct OpCall {
  std::string_view name{};  ///< `aten::addmm`
  /// Its tensors in the order of its arguments, those in lists one by one.
  std::vector<OperandShape> operands{};
};

/// What an operator asks of a device.
struct OpWork {
  double flops = 0;           ///< of matrix products and convolutions; other operators are bound by memory
  Bytes bytes = 0;            ///< read and written, each operand once
  std::string_view dtype{};   ///< in which it computes: that of its operands, or `tf32`
  bool tensor_cores = false;  ///< a matrix product or convolution, which tensor cores compute where they can
};

/// `allocated`: device bytes that the operator has allocated so far, what it returns among them.
///
/// A product of [m,k] and [k,n] takes 2 m k n operations, one multiplication and one addition each; a
/// convolution 2 for each element of its output and of one filter; attention 2 products (its backward 5, as
/// Dao 2023, "FlashAttention-2", counts) over the whole square of places, since masks are not known. float32
/// computes as such in matrix products and as tf32 in convolutions: PyTorch's defaults (docs, "CUDA
/// semantics", TensorFloat-32). All other operators move memory: each operand once and what was allocated,
/// and, in place, what they write.
OpWork work_of(const OpCall& op, Bytes allocated);

}  // namespace offprof
