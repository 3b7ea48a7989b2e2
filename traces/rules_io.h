#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/json_access.h"
#include "traces/policy_rule.h"

namespace offprof {

/// `[{"op": "aten::gelu*", "min_bytes": 1024, "placement": "quantize:uint8+host"}, ...]`: what a rule does
/// not ask for it leaves out.
nlohmann::ordered_json rules_to_json(const std::vector<PolicyRule>& rules);
/// Throws Error (input) with the place in the file: unknown keys, values out of range, ranges without a
/// number.
std::vector<PolicyRule> rules_from_json(const JsonValue& json);

/// A string that parse_placement reads; its error names the place in the file.
Placement placement_from_json(const JsonValue& json);

}  // namespace offprof
