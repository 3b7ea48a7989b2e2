#pragma once

#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Time from `begin_ns` up to, but not including, `end_ns`.
struct Interval {
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;

  bool operator==(const Interval&) const = default;
};

/// A set of points in time: intervals in order, none of them empty or touching another.
using TimeSet = std::vector<Interval>;

/// Returns the union of `intervals`, which may overlap and come in any order.
TimeSet united(std::vector<Interval> intervals);
/// Returns the intersection of both sets.
TimeSet intersected(const TimeSet& a, const TimeSet& b);
/// Returns the points of `a` that are not in `b`.
TimeSet without(const TimeSet& a, const TimeSet& b);
Nanoseconds length_of(const TimeSet& set);

}  // namespace offprof
