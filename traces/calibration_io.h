#pragma once

#include <nlohmann/json.hpp>

#include "traces/calibration.h"
#include "traces/json_access.h"

namespace offprof {

/// The three figures that each measurement has: `median_ns`, `low_ns`, `high_ns`.
nlohmann::ordered_json to_json(const Measured& measured);
/// Throws Error (input) for times out of range, and for quartiles that do not lie around the median.
Measured measured_from_json(const JsonValue& json);

nlohmann::ordered_json to_json(const Calibration& calibration);
/// Throws Error (input) for values out of range.
Calibration calibration_from_json(const JsonValue& json);

}  // namespace offprof
