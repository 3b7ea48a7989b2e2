#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Writes `[{"name": "quantize:uint8", "lossless": false, "costs": [{"dtype": "float32", "elements": 1024,
/// ...}]}, ...]`: see docs/reference/trace-format.md.
nlohmann::ordered_json transforms_to_json(const std::vector<TransformProfile>& profiles);
/// Reads the same form. Throws Error (input) for a missing member, a value out of range, a duplicate, or a
/// free without an allocation.
std::vector<TransformProfile> transforms_from_json(const JsonValue& json);

/// Writes `{"memory": [50, 120, -1], "compute_ns": 7}`.
nlohmann::ordered_json use_to_json(const TransformUse& use);
/// Reads the same form. Throws Error (input) for a missing member, a value out of range, or a list that does
/// not leave exactly one allocation.
TransformUse use_from_json(const JsonValue& json);

}  // namespace offprof
