#pragma once

#include <string>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Appends `"saved": {"columns": [...], "rows": [...]}`: every member of the saved tensors except their
/// module and line.
void append_saved_tensors(std::string& out, const std::vector<SavedTensor>& saved);

/// Reads the value of `saved`. Throws Error (input).
std::vector<SavedTensor> saved_tensors_from_json(const JsonValue& json);

}  // namespace offprof
