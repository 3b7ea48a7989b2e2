#pragma once

#include <nlohmann/json.hpp>

#include "traces/io/json_access.h"
#include "traces/model/tracing.h"

namespace offprof {

nlohmann::ordered_json to_json(const Tracing& tracing);
/// Reads the tracing. Throws Error (input) for values out of range.
Tracing tracing_from_json(const JsonValue& json);

}  // namespace offprof
