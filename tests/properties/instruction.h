#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "traces/policy.h"

namespace offprof {

/// One instruction of a random autograd program. Whatever it holds, it means something, so that a program
/// from which instructions are taken out is still one.
struct Instruction {
  std::uint8_t op = 0;  ///< index in operations(), modulo their number
  std::uint8_t first =
      0;  ///< operand: a tensor of the pool, counted from the newest, modulo how many there are
  std::uint8_t second = 0;  ///< likewise
  std::uint8_t number = 0;  ///< dimension, length, scale: what the operation makes of it

  auto operator<=>(const Instruction&) const = default;
};

using Instructions = std::vector<Instruction>;

/// A program and the policies it is run under.
struct RandomCase {
  Instructions program;
  std::vector<Policy> policies;

  bool operator==(const RandomCase&) const = default;
};

}  // namespace offprof
