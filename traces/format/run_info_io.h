#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "traces/io/json_access.h"
#include "traces/model/trace.h"

namespace offprof {

/// Selects the members of a description of a run.
enum class RunDetail : std::uint8_t {
  kFull,      ///< all members: traces
  kIdentity,  ///< the members by which `diff` and `gate` tell whether two runs are comparable: reports and
              ///< baselines
};

nlohmann::ordered_json to_json(const Environment& environment, RunDetail detail);
nlohmann::ordered_json to_json(const ModelInfo& model, RunDetail detail);
nlohmann::ordered_json to_json(const RunSettings& settings, RunDetail detail);
/// Without samples, which no recording counts.
nlohmann::ordered_json to_json(const StepSize& size);

/// Readers of the same. With kIdentity, only the members that the writers write are read, and all others keep
/// their defaults. Throw Error (input) for a member that is missing, of another type, or out of range.
Environment environment_from_json(const JsonValue& json, RunDetail detail);
ModelInfo model_from_json(const JsonValue& json, RunDetail detail);
RunSettings settings_from_json(const JsonValue& json, RunDetail detail);
StepSize step_size_from_json(const JsonValue& json);

}  // namespace offprof
