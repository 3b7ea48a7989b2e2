#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/json_access.h"
#include "traces/transform_cost.h"

namespace offprof {

/// `[{"name": "quantize:uint8", "lossless": false, "costs": [{"dtype": "float32", "elements": 1024, ...}]},
/// ...]`: see docs/trace-format.md.
nlohmann::ordered_json transforms_to_json(const std::vector<TransformProfile>& profiles);
/// Throws Error (input): what is missing, out of range, said twice, or frees what is not there.
std::vector<TransformProfile> transforms_from_json(const JsonValue& json);

/// `{"memory": [50, 120, -1], "compute_ns": 7}`.
nlohmann::ordered_json use_to_json(const TransformUse& use);
/// Throws Error (input): what is missing, out of range, or does not leave one allocation.
TransformUse use_from_json(const JsonValue& json);

}  // namespace offprof
