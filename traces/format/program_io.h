#pragma once

#include <string>

#include "traces/io/json_access.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Appends the step program as the JSON object that docs/reference/trace-format.md describes. It is stored in
/// columns to keep it small.
void append_program(std::string& out, const StepProgram& program);

/// Reads a step program and checks it with check_program. Throws Error (input) with the place of the fault.
StepProgram program_from_json(const JsonValue& json);

/// Throws Error (input) if the step program contradicts itself: an index out of range, a free before the
/// allocation, an unpack before the pack, a negative or overflowing size. `where` is the place that errors
/// name.
void check_program(const StepProgram& program, const std::string& where);

}  // namespace offprof
