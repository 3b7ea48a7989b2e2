#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/gradient_error.h"

namespace offprof {

/// Writes `[{"parameter": "w", "max_abs": 0.01, "relative_norm": 0.002, "cosine": 0.99999}, ...]`. A figure
/// that is not finite becomes null.
nlohmann::ordered_json gradient_errors_to_json(const std::vector<GradientError>& errors);
/// Reads the same form. null becomes NaN. Throws Error (input).
std::vector<GradientError> gradient_errors_from_json(const JsonValue& json);

}  // namespace offprof
