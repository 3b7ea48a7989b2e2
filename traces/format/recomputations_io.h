#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/recomputation.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Writes `[{"tensor": 5, "op": "aten::gelu", "sources": [3], "use": {...}}, ...]`: see
/// docs/reference/trace-format.md.
nlohmann::ordered_json recomputations_to_json(const std::vector<Recomputation>& recomputations);
/// Reads the recompute steps for the saved tensors of `program`. Throws Error (input) for a missing member, a
/// value out of range, a tensor that may not move or is not the first with its content, a duplicate or
/// unsorted tensor, a source that is saved no earlier or has the same content, or a result of another size.
std::vector<Recomputation> recomputations_from_json(const JsonValue& json, const StepProgram& program);

}  // namespace offprof
