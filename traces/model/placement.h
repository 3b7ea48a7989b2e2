#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace offprof {

/// Place of a saved tensor until backward.
enum class Place : std::uint8_t {
  kDevice,
  kHost,
  kDisk,
  kCompress,   ///< in host memory, compressed without loss; replaces the disk of a device
  kRecompute,  ///< nowhere: the tensor is dropped and recomputed by its Recomputation
};

std::string_view to_string(Place place);

/// Returns true if the place uses space on the device's disk, or in the compressed memory that replaces it.
constexpr bool takes_disk(Place place) {
  return place == Place::kDisk || place == Place::kCompress;
}

/// Placement of a saved tensor by a rule: the transform that encodes it, and the place of the encoded tensor.
struct Placement {
  std::string transform{};  ///< `quantize:uint8`, ...; empty: the tensor is not encoded
  Place place = Place::kDevice;

  bool operator==(const Placement&) const = default;
};

/// Parses `device`, `host`, `disk`, `compress`, `recompute`, `quantize:uint8` (encoded, on the device) or
/// `quantize:uint8+host`. A recomputed tensor is not encoded. `identity` does not encode, so that
/// `identity+host` equals `host`. Throws Error (input) for any other form. Only a run's record can tell
/// whether the transform exists.
Placement parse_placement(std::string_view text);
/// Formats a placement in the form that parse_placement reads.
std::string to_string(const Placement& placement);

}  // namespace offprof
