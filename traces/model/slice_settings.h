#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/io/json_access.h"

namespace offprof {

/// Limit on layer slices and micro-batches, above any useful number.
inline constexpr std::int64_t kMostSlices = 100'000;

/// `--slices`: the model runs as this many layer slices, one after another. Forward only saves the values
/// that pass from slice to slice, and backward runs the forward of each slice again.
struct SliceSettings {
  std::optional<std::int64_t> count{};  ///< nullopt: the run chooses
  std::int64_t microbatches = 1;        ///< parts of the inputs; each slice runs all of them in turn

  bool operator==(const SliceSettings&) const = default;
};

/// Describes the settings for a person: `none`, or `4 slices, 2 micro-batches`.
std::string describe(const std::optional<SliceSettings>& slices);

nlohmann::ordered_json to_json(const SliceSettings& slices);
/// Reads the settings. Throws Error (input).
SliceSettings slice_settings_from_json(const JsonValue& json);

}  // namespace offprof
