#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace offprof {

/// Where a saved tensor waits for backward.
enum class Place : std::uint8_t {
  kDevice,
  kHost,
  kDisk,
  kRecompute,  ///< nowhere: it is dropped, and made again by its Recipe
};

std::string_view to_string(Place place);

/// What a rule makes of a saved tensor: what packs it, and where the packed tensor waits.
struct Placement {
  std::string transform{};  ///< `quantize:uint8`, ...; empty: it waits as it is
  Place place = Place::kDevice;

  bool operator==(const Placement&) const = default;
};

/// `device`, `host`, `disk`, `recompute`, `quantize:uint8` (packed, on the device), `quantize:uint8+host`.
/// What is made again is not packed. `identity` packs nothing, so that `identity+host` is `host`. Throws
/// Error (input) for any other form; whether there is such a transform only the run's record knows.
Placement parse_placement(std::string_view text);
/// As parse_placement reads it.
std::string to_string(const Placement& placement);

}  // namespace offprof
