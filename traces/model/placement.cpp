#include "traces/model/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::array<std::string_view, 5> kPlaces = {"device", "host", "disk", "compress", "recompute"};
static_assert(kPlaces.size() == static_cast<std::size_t>(Place::kRecompute) + 1);
constexpr std::string_view kIdentity = "identity";

std::optional<Place> find_place(std::string_view name) {
  const auto found = std::ranges::find(kPlaces, name);
  if (found == kPlaces.end()) return std::nullopt;
  return static_cast<Place>(found - kPlaces.begin());
}

/// Returns true for lower-case words with parameters, like `quantize:uint8:128`.
bool is_transform_name(std::string_view name) {
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_:") == name.npos;
}

}  // namespace

std::string_view to_string(Place place) {
  return kPlaces.at(static_cast<std::size_t>(place));
}

Placement parse_placement(std::string_view text) {
  if (const auto place = find_place(text)) return {"", *place};
  const std::size_t plus = text.find('+');
  const std::string_view transform = text.substr(0, plus);
  const auto place =
      plus == std::string_view::npos ? std::optional(Place::kDevice) : find_place(text.substr(plus + 1));
  if (!place || place == Place::kRecompute || find_place(transform) || !is_transform_name(transform))
    throw input_error(
        fmt::format("'{}' is not a placement", text),
        "Placements: device, host, disk, compress, recompute, or a transform and a place, such as "
        "quantize:uint8+host");
  return {transform == kIdentity ? std::string() : std::string(transform), *place};
}

std::string to_string(const Placement& placement) {
  if (placement.transform.empty()) return std::string(to_string(placement.place));
  if (placement.place == Place::kDevice) return placement.transform;
  return fmt::format("{}+{}", placement.transform, to_string(placement.place));
}

}  // namespace offprof
