#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/properties/instruction.h"
#include "tests/properties/pool.h"

namespace offprof {

/// Runs the program, and at its end backward over what is left to start it from. What LibTorch refuses to do
/// is left out; returns a line for each: the instruction, and the kind of the refusal without the particulars
/// that differ from engine to engine.
std::vector<std::string> interpret(const Instructions& program, Leaves& leaves);

/// `3 multiply_(0, 2; 7)`: number 3 of the program.
std::string describe(const Instruction& instruction, std::size_t index);

/// What the engine says where what a tensor is made of was changed in place, which plain autograd would not
/// notice.
inline constexpr std::string_view kCannotBeMadeAgain = "cannot be made again";

/// Whether one of the refusals says so.
bool refuses_to_make_again(const std::vector<std::string>& refusals);

}  // namespace offprof
