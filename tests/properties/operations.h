#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "tests/properties/instruction.h"

namespace offprof {

class Pool;

/// What an instruction may do. It throws where LibTorch refuses it.
struct Operation {
  using Make = at::Tensor (*)(const at::Tensor& a, const at::Tensor& b, std::int64_t n);
  using Act = void (*)(Pool& pool, const Instruction& instruction);

  std::string_view name;
  int weight = 1;           ///< how often it is drawn
  Make make = nullptr;      ///< a new tensor out of two
  Act act = nullptr;        ///< or else anything
  bool asks_again = false;  ///< backward may ask for a saved tensor twice: TRL's rules let go of it before
};

/// All of them; their order is that of Instruction::op.
std::span<const Operation> operations();

inline const Operation& operation_of(const Instruction& instruction) {
  return operations()[instruction.op % operations().size()];
}

/// Parts of operations(): those that only make a tensor, and the others.
std::span<const Operation> tensor_operations();
std::span<const Operation> graph_operations();

/// `t` with as many numbers as `sizes` asks for: cut off, or repeated.
at::Tensor fitted(const at::Tensor& t, at::IntArrayRef sizes);
/// A number to start backward from.
at::Tensor total(const at::Tensor& t);

}  // namespace offprof
