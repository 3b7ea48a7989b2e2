#pragma once

#include <string>
#include <vector>

#include "traces/json_access.h"
#include "traces/program.h"

namespace offprof {

/// `"saved": {"columns": [...], "rows": [...]}`: what a trace says of each saved tensor but its module.
void append_saved_tensors(std::string& out, const std::vector<SavedTensor>& saved);

/// The value of `saved`. Throws Error (input).
std::vector<SavedTensor> saved_tensors_from_json(const JsonValue& json);

}  // namespace offprof
