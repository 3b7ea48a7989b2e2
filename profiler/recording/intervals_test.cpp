#include "profiler/recording/intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace offprof {
namespace {

using testing::ElementsAre;

TEST(United, JoinsOverlappingAndTouchingIntervals) {
  EXPECT_THAT(united({{20, 30}, {0, 5}, {5, 8}, {25, 40}, {50, 50}, {60, 55}}),
              ElementsAre(Interval{0, 8}, Interval{20, 40}));
}

TEST(Intersected, ReturnsThePointsInBothSets) {
  EXPECT_THAT(intersected({{0, 10}, {20, 30}}, {{5, 22}, {29, 50}}),
              ElementsAre(Interval{5, 10}, Interval{20, 22}, Interval{29, 30}));
}

TEST(Without, CutsHoles) {
  EXPECT_THAT(without({{0, 10}, {20, 30}}, {{2, 4}, {8, 22}, {30, 40}}),
              ElementsAre(Interval{0, 2}, Interval{4, 8}, Interval{22, 30}));
}

TEST(Without, AHoleMayCoverSeveralIntervals) {
  EXPECT_THAT(without({{0, 10}, {20, 30}, {40, 50}}, {{5, 45}}),
              ElementsAre(Interval{0, 5}, Interval{45, 50}));
}

constexpr Nanoseconds kEnd = 60;

std::vector<Interval> any_intervals() {
  std::vector<Interval> intervals;
  for (const auto& [begin, length] : *rc::gen::container<std::vector<std::pair<int, int>>>(
           rc::gen::pair(rc::gen::inRange(0, 50), rc::gen::inRange(0, 10))))
    intervals.push_back({begin, begin + length});
  return intervals;
}

bool has(const std::vector<Interval>& intervals, Nanoseconds time) {
  return std::ranges::any_of(intervals, [&](const Interval& interval) {
    return interval.begin_ns <= time && time < interval.end_ns;
  });
}

bool is_time_set(const TimeSet& set) {
  for (std::size_t i = 0; i < set.size(); ++i)
    if (set[i].begin_ns >= set[i].end_ns || (i > 0 && set[i - 1].end_ns >= set[i].begin_ns)) return false;
  return true;
}

RC_GTEST_PROP(TimeSets, AreCorrectAtEveryInstant, ()) {
  const auto raw_a = any_intervals(), raw_b = any_intervals();
  const TimeSet a = united(raw_a), b = united(raw_b);
  const TimeSet both = intersected(a, b), only_a = without(a, b);
  RC_ASSERT(is_time_set(a));
  RC_ASSERT(is_time_set(both));
  RC_ASSERT(is_time_set(only_a));
  Nanoseconds count = 0;
  for (Nanoseconds time = 0; time < kEnd; ++time) {
    RC_ASSERT(has(a, time) == has(raw_a, time));
    RC_ASSERT(has(both, time) == (has(raw_a, time) && has(raw_b, time)));
    RC_ASSERT(has(only_a, time) == (has(raw_a, time) && !has(raw_b, time)));
    count += has(a, time) ? 1 : 0;
  }
  RC_ASSERT(length_of(a) == count);
  RC_ASSERT(length_of(both) + length_of(only_a) == length_of(a));
}

}  // namespace
}  // namespace offprof
