#include "simulator/tuner/settings/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace offprof {
namespace {

using testing::ElementsAre;
using Point = std::pair<Bytes, Nanoseconds>;

Candidate candidate(Bytes peak, Nanoseconds time, Bytes host = 0) {
  Candidate made;
  made.predicted.device_peak_bytes = peak;
  made.predicted.step_time_ns = time;
  made.predicted.host_peak_bytes = host;
  made.predicted.d2h_bytes = 0;
  return made;
}

std::vector<Point> points(const Frontier& frontier) {
  std::vector<Point> points;
  for (const Candidate& c : frontier.candidates())
    points.emplace_back(*c.predicted.device_peak_bytes, *c.predicted.step_time_ns);
  return points;
}

Frontier made_of(const std::vector<Point>& all) {
  Frontier frontier;
  for (const auto& [peak, time] : all) frontier.add(candidate(peak, time));
  return frontier;
}

TEST(Frontier, KeepsCandidatesThatNoneDominates) {
  EXPECT_THAT(points(made_of({{10, 5}, {20, 3}, {15, 6}, {5, 9}, {30, 3}})),
              ElementsAre(Point(5, 9), Point(10, 5), Point(20, 3)));
}

TEST(Frontier, RemovesDominatedCandidates) {
  EXPECT_THAT(points(made_of({{10, 5}, {20, 3}, {9, 2}})), ElementsAre(Point(9, 2)));
}

TEST(Frontier, PrefersLessHostMemoryAmongEquals) {
  Frontier frontier;
  EXPECT_TRUE(frontier.add(candidate(10, 5, 7)));
  EXPECT_FALSE(frontier.add(candidate(10, 5, 7)));
  EXPECT_TRUE(frontier.add(candidate(10, 5, 3)));
  ASSERT_EQ(frontier.candidates().size(), 1U);
  EXPECT_EQ(frontier.candidates().front().predicted.host_peak_bytes, 3);
}

TEST(Frontier, KeepsRunnersUpWithTheSmallestMargin) {
  Frontier frontier(2);
  for (const auto& [peak, time] : std::vector<Point>{{100, 50}, {200, 30}, {150, 80}, {105, 60}, {210, 90}})
    frontier.add(candidate(peak, time));
  frontier.add(candidate(199, 29));  // dominates (200, 30)
  std::vector<Point> runners_up;
  for (const Candidate& c : frontier.runners_up())
    runners_up.emplace_back(*c.predicted.device_peak_bytes, *c.predicted.step_time_ns);
  EXPECT_THAT(runners_up, ElementsAre(Point(200, 30), Point(105, 60)));
  EXPECT_TRUE(made_of({{10, 5}, {20, 6}}).runners_up().empty());
}

TEST(Frontier, BestIsTheFastestWithinAPeakOrTheLowestWithinATime) {
  const Frontier frontier = made_of({{5, 9}, {10, 5}, {20, 3}});
  const auto peak = [&](const Aim& aim) { return *frontier.best(aim).predicted.device_peak_bytes; };
  EXPECT_EQ(peak({12, {}}), 10);
  EXPECT_EQ(peak({20, {}}), 20);
  EXPECT_EQ(peak({{}, 5}), 10);
  EXPECT_EQ(peak({{}, 100}), 5);
}

TEST(Frontier, BestIsTheNearestIfNoneIsWithinTheLimit) {
  const Frontier frontier = made_of({{5, 9}, {10, 5}, {20, 3}});
  EXPECT_EQ(frontier.best({4, {}}).predicted.device_peak_bytes, 5);
  EXPECT_EQ(frontier.best({{}, 2}).predicted.device_peak_bytes, 20);
}

RC_GTEST_PROP(FrontierProperty, ReachesWhateverAnyCandidateReaches, ()) {
  const auto number = rc::gen::inRange<std::int64_t>(0, 20);
  const auto all = *rc::gen::container<std::vector<Point>>(rc::gen::pair(number, number));
  const Frontier frontier = made_of(all);
  const Bytes peak = *number;
  const Nanoseconds time = *number;
  const bool reached = std::any_of(all.begin(), all.end(),
                                   [&](const Point& p) { return p.first <= peak && p.second <= time; });
  RC_ASSERT(frontier.reaches(peak, time) == reached);
}

}  // namespace
}  // namespace offprof
