#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/properties/instruction.h"
#include "tests/properties/pool.h"

namespace offprof {

/// Runs the program, then backward from the remaining losses. Operations that LibTorch refuses are skipped.
/// Returns a line for each of them: the instruction and the kind of the refusal, without details that differ
/// between engines.
std::vector<std::string> interpret(const Instructions& program, Leaves& leaves);

/// Returns a description such as `3 multiply_(0, 2; 7)` for number 3 of the program.
std::string describe(const Instruction& instruction, std::size_t index);

/// Message of the engine if a source of a tensor was changed in place, which plain autograd would not notice.
inline constexpr std::string_view kCannotBeMadeAgain = "cannot be recomputed";

/// True if one of the refusals has that message.
bool refuses_to_make_again(const std::vector<std::string>& refusals);

}  // namespace offprof
