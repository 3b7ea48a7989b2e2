#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "traces/model/policy.h"

namespace offprof {

/// Instruction of a random autograd program. Every value is valid, so a program stays valid if instructions
/// are removed.
struct Instruction {
  std::uint8_t op = 0;  ///< index in operations(), modulo their number
  /// Operand: a tensor of the pool, counted from the newest, modulo the size of the pool.
  std::uint8_t first = 0;
  std::uint8_t second = 0;  ///< second operand
  std::uint8_t number = 0;  ///< dimension, length or scale: the operation chooses the meaning

  auto operator<=>(const Instruction&) const = default;
};

using Instructions = std::vector<Instruction>;

/// Program and the policies under which it runs.
struct RandomCase {
  Instructions program;
  std::vector<Policy> policies;

  bool operator==(const RandomCase&) const = default;
};

}  // namespace offprof
