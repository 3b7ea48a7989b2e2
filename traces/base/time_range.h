#pragma once

#include "traces/base/units.h"

namespace offprof {

/// Range of a time.
struct TimeRange {
  Nanoseconds low_ns = 0, high_ns = 0;
  bool operator==(const TimeRange&) const = default;
};

}  // namespace offprof
