#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/properties/instruction.h"

namespace offprof {

class Pool;

/// Operation of an instruction. It throws if LibTorch refuses it.
struct Operation {
  using Make = at::Tensor (*)(const at::Tensor& a, const at::Tensor& b, std::int64_t n);
  using Act = void (*)(Pool& pool, const Instruction& instruction);

  std::string_view name;
  int weight = 1;       ///< frequency in random programs
  Make make = nullptr;  ///< creates a tensor from two
  Act act = nullptr;    ///< does anything else
  /// True if backward may unpack a saved tensor twice; TRL's rules drop it after the first time.
  bool asks_again = false;
};

/// Returns all operations; Instruction::op is an index into them.
std::span<const Operation> operations();

inline const Operation& operation_of(const Instruction& instruction) {
  return operations()[instruction.op % operations().size()];
}

/// Return the two parts of operations(): those that only create a tensor, and the others.
std::span<const Operation> tensor_operations();
std::span<const Operation> graph_operations();

/// Returns `t` with as many elements as `sizes` needs: cut off, or repeated.
at::Tensor fitted(const at::Tensor& t, at::IntArrayRef sizes);
/// Returns a number to start backward from.
at::Tensor total(const at::Tensor& t);

}  // namespace offprof
