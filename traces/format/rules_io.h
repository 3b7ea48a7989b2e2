#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/policy_rule.h"

namespace offprof {

/// Writes `[{"op": "aten::gelu*", "min_bytes": 1024, "placement": "quantize:uint8+host"}, ...]`. Conditions
/// that a rule does not set are left out.
nlohmann::ordered_json rules_to_json(const std::vector<PolicyRule>& rules);
/// Reads rules. Throws Error (input), with the place in the file, for unknown keys, values out of range and
/// empty ranges.
std::vector<PolicyRule> rules_from_json(const JsonValue& json);

/// Reads a string with parse_placement; its error names the place in the file.
Placement placement_from_json(const JsonValue& json);

}  // namespace offprof
