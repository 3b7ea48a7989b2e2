#pragma once

#include <nlohmann/json.hpp>

#include "traces/calibration.h"
#include "traces/json_access.h"

namespace offprof {

nlohmann::ordered_json to_json(const Calibration& calibration);
/// Throws Error (input) for values out of range.
Calibration calibration_from_json(const JsonValue& json);

}  // namespace offprof
