#pragma once

#include <vector>

#include "traces/units.h"

namespace offprof {

/// From `begin_ns` up to `end_ns`, without it.
struct Interval {
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;

  bool operator==(const Interval&) const = default;
};

/// A set of points in time: intervals in order, none empty, none touching another.
using TimeSet = std::vector<Interval>;

/// All that lies in any of `intervals`, which may overlap and come in any order.
TimeSet united(std::vector<Interval> intervals);
/// What lies in both.
TimeSet intersected(const TimeSet& a, const TimeSet& b);
/// What lies in `a` and not in `b`.
TimeSet without(const TimeSet& a, const TimeSet& b);
Nanoseconds length_of(const TimeSet& set);

}  // namespace offprof
