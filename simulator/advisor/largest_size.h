#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Returns the bytes that steps of those sizes take, which ascend. The bytes should grow about evenly with
/// the size. nullopt: there is no such step, nor a larger one.
using TakenBytes = std::function<std::vector<std::optional<Bytes>>(const std::vector<std::int64_t>& sizes)>;

/// Returns the largest size from 1 to kMostSize whose step takes at most `most` bytes; 0: none. `guess` is
/// the first size to try, and up to `at_once` sizes are tried together. Between a size that fits and one that
/// does not, the next ones to try are around the interpolated one, and every third time spread evenly.
std::int64_t largest_size(std::int64_t guess, Bytes most, std::size_t at_once, const TakenBytes& taken);

/// Largest size that is tried.
inline constexpr std::int64_t kMostSize = std::int64_t{1} << 24;

}  // namespace offprof
