#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/base/units.h"
#include "traces/io/json_access.h"

namespace offprof {

/// `--offload-params`: parameters, their gradients and the optimizer state are on the device only around
/// their uses.
struct ParameterSettings {
  std::string place;  ///< place where they wait: `host`, `disk`
  /// Limit on their bytes on the device, unless one operator needs more; nullopt: the run chooses.
  std::optional<Bytes> window_bytes{};

  bool operator==(const ParameterSettings&) const = default;
};

/// Describes the settings: `on the device`, or `on the host, at most 32.0 KiB of them on the device`.
std::string describe(const std::optional<ParameterSettings>& parameters);

nlohmann::ordered_json to_json(const ParameterSettings& parameters);
/// Reads the settings. Throws Error (input).
ParameterSettings parameter_settings_from_json(const JsonValue& json);

}  // namespace offprof
