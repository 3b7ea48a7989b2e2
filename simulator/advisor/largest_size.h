#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "traces/base/units.h"

namespace offprof {

/// Returns the largest size from 1 to kMostSize whose step takes at most `most` bytes; 0: none. `taken`
/// returns the bytes of a size, which should grow about evenly with it; nullopt: there is no such step, nor a
/// larger one. `guess` is the first size to try. Between a size that fits and one that does not, the next one
/// to try is interpolated, and every third time their middle.
std::int64_t largest_size(std::int64_t guess, Bytes most,
                          const std::function<std::optional<Bytes>(std::int64_t)>& taken);

/// Largest size that is tried.
inline constexpr std::int64_t kMostSize = std::int64_t{1} << 24;

}  // namespace offprof
