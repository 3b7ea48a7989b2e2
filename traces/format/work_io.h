#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/work.h"

namespace offprof {

/// Appends StepProgram::work and StepProgram::stream_commands as the JSON objects that
/// docs/reference/trace-format.md describes.
void append_work(std::string& out, const std::vector<Work>& work);
void append_stream_commands(std::string& out, const std::vector<StreamCommand>& commands);

/// Read them. Throw Error (input) if a column has another length than the rest, or a value is impossible.
/// check_program checks the rest.
std::vector<Work> read_work(const JsonValue& json, std::size_t events);
std::vector<StreamCommand> read_stream_commands(const JsonValue& json);

}  // namespace offprof
