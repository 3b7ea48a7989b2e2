#pragma once

#include <nlohmann/json.hpp>

#include "traces/io/json_access.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Writes the three figures of a measurement: `median_ns`, `low_ns`, `high_ns`.
nlohmann::ordered_json to_json(const MeasuredQuartiles& measured);
/// Reads a measurement. Throws Error (input) if a time is out of range or the quartiles do not enclose the
/// median.
MeasuredQuartiles measured_from_json(const JsonValue& json);

nlohmann::ordered_json to_json(const Calibration& calibration);
/// Reads a calibration. Throws Error (input) if a value is out of range.
Calibration calibration_from_json(const JsonValue& json);

}  // namespace offprof
