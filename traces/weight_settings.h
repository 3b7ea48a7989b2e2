#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/json_access.h"
#include "traces/units.h"

namespace offprof {

/// `--weights`: weights, their gradients and the optimizer's state lie on the device only around their uses.
struct WeightSettings {
  std::string place;  ///< where they wait: `host`, `disk`
  /// How much of them may lie there, unless one operator needs more; nullopt: the run chooses.
  std::optional<Bytes> window_bytes{};

  bool operator==(const WeightSettings&) const = default;
};

/// `on the device`, or `on the host, at most 32.0 KiB of them on the device`.
std::string describe(const std::optional<WeightSettings>& weights);

nlohmann::ordered_json to_json(const WeightSettings& weights);
/// Throws Error (input).
WeightSettings weight_settings_from_json(const JsonValue& json);

}  // namespace offprof
