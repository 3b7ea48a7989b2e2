#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/program.h"
#include "traces/model/recipe.h"

namespace offprof {

/// Writes `[{"tensor": 5, "op": "aten::gelu", "sources": [3], "use": {...}}, ...]`: see docs/trace-format.md.
nlohmann::ordered_json recipes_to_json(const std::vector<Recipe>& recipes);
/// Reads the recompute steps for the saved tensors of `program`. Throws Error (input) for a missing member, a
/// value out of range, a tensor that may not move or is not the first with its content, a duplicate or
/// unsorted tensor, a source that is saved no earlier or has the same content, or a result of another size.
std::vector<Recipe> recipes_from_json(const JsonValue& json, const Program& program);

}  // namespace offprof
