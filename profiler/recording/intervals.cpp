#include "profiler/recording/intervals.h"

#include <algorithm>

namespace offprof {

TimeSet united(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin_ns);
  TimeSet set;
  for (const Interval& interval : intervals) {
    if (interval.end_ns <= interval.begin_ns) continue;
    if (!set.empty() && interval.begin_ns <= set.back().end_ns)
      set.back().end_ns = std::max(set.back().end_ns, interval.end_ns);
    else
      set.push_back(interval);
  }
  return set;
}

TimeSet intersected(const TimeSet& a, const TimeSet& b) {
  TimeSet set;
  for (auto in_a = a.begin(), in_b = b.begin(); in_a != a.end() && in_b != b.end();) {
    const Nanoseconds begin = std::max(in_a->begin_ns, in_b->begin_ns);
    const Nanoseconds end = std::min(in_a->end_ns, in_b->end_ns);
    if (begin < end) set.push_back({begin, end});
    if (in_a->end_ns < in_b->end_ns)
      ++in_a;
    else
      ++in_b;
  }
  return set;
}

TimeSet without(const TimeSet& a, const TimeSet& b) {
  TimeSet set;
  auto hole = b.begin();
  for (Interval rest : a) {
    while (hole != b.end() && hole->end_ns <= rest.begin_ns) ++hole;
    for (auto next = hole; next != b.end() && next->begin_ns < rest.end_ns; ++next) {
      if (rest.begin_ns < next->begin_ns) set.push_back({rest.begin_ns, next->begin_ns});
      rest.begin_ns = next->end_ns;
    }
    if (rest.begin_ns < rest.end_ns) set.push_back(rest);
  }
  return set;
}

Nanoseconds length_of(const TimeSet& set) {
  Nanoseconds sum = 0;
  for (const Interval& interval : set) sum += interval.end_ns - interval.begin_ns;
  return sum;
}

}  // namespace offprof
