#pragma once

#include <string>

#include "traces/json_access.h"
#include "traces/program.h"

namespace offprof {

/// Appends the program as the JSON object that docs/trace-format.md describes: columns, so that it stays
/// small.
void append_program(std::string& out, const Program& program);

/// The reverse; the result has passed check_program. Throws Error (input) with the place of what is wrong.
Program program_from_json(const JsonValue& json);

/// Throws Error (input) where the program contradicts itself: an index out of range, a free before its
/// allocation, an unpack before its pack, a negative or overflowing size. `where` is the place that errors
/// name.
void check_program(const Program& program, const std::string& where);

}  // namespace offprof
