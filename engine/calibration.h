#pragma once

#include <algorithm>
#include <vector>

#include "traces/link.h"

namespace offprof {

/// What copies of one direction cost, from the median times of small and of large ones. `time_copies(bytes)`
/// returns how long each of several copies of so many bytes took.
template <typename TimeCopies>
LinkDirection calibrate_direction(Bytes large_bytes, const TimeCopies& time_copies) {
  constexpr Bytes kSmallBytes = 64;
  const auto median_of = [&](Bytes bytes) {
    std::vector<Nanoseconds> durations = time_copies(bytes);
    const auto middle = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 2);
    std::nth_element(durations.begin(), middle, durations.end());
    return *middle;
  };
  const Nanoseconds small = median_of(kSmallBytes), large = median_of(large_bytes);
  const auto beyond_latency = static_cast<double>(std::max<Nanoseconds>(large - small, 1));
  return {static_cast<double>(large_bytes - kSmallBytes) / beyond_latency * 1e9, small};
}

}  // namespace offprof
