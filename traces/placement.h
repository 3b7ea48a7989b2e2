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
  kCompress,   ///< in host memory, compressed without loss: what a device has instead of a disk
  kRecompute,  ///< nowhere: it is dropped, and made again by its Recipe
};

std::string_view to_string(Place place);

/// Whether it takes space of the device's disk, or of what is there instead.
constexpr bool takes_disk(Place place) {
  return place == Place::kDisk || place == Place::kCompress;
}

/// What a rule makes of a saved tensor: what packs it, and where the packed tensor waits.
struct Placement {
  std::string transform{};  ///< `quantize:uint8`, ...; empty: it waits as it is
  Place place = Place::kDevice;

  bool operator==(const Placement&) const = default;
};

/// `device`, `host`, `disk`, `compress`, `recompute`, `quantize:uint8` (packed, on the device),
/// `quantize:uint8+host`. What is made again is not packed. `identity` packs nothing, so that `identity+host`
/// is `host`. Throws Error (input) for any other form; whether there is such a transform only the run's
/// record knows.
Placement parse_placement(std::string_view text);
/// As parse_placement reads it.
std::string to_string(const Placement& placement);

}  // namespace offprof
