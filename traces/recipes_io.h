#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/json_access.h"
#include "traces/program.h"
#include "traces/recipe.h"

namespace offprof {

/// `[{"tensor": 5, "op": "aten::gelu", "sources": [3], "use": {...}}, ...]`: see docs/trace-format.md.
nlohmann::ordered_json recipes_to_json(const std::vector<Recipe>& recipes);
/// Of the program's saved tensors. Throws Error (input): what is missing or out of range, a tensor that may
/// not move or is not the first of its content, one that is told of twice or out of order, a source that is
/// saved no earlier or is the same content, a result of another size.
std::vector<Recipe> recipes_from_json(const JsonValue& json, const Program& program);

}  // namespace offprof
