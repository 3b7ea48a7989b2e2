#include "profiler/recording/tracing_cost.h"

#include <gtest/gtest.h>

#include <string>

namespace offprof {
namespace {

TEST(TracingCost, InterleavesTheStepsAndSkipsTheFirstRound) {
  std::string order;
  const auto steps_of = [&](char kind, Nanoseconds first, Nanoseconds others) {
    return [&order, kind, first, others] {
      order += kind;
      return order.size() <= 5 ? first : others;
    };
  };
  const TracingCost cost =
      measure_tracing_cost({steps_of('u', 900, 100), steps_of('s', 900, 102), steps_of('t', 9'000, 104),
                            steps_of('r', 900, 107), steps_of('e', 9'000, 110)});
  EXPECT_EQ(cost.untraced, (MeasuredQuartiles{100, 100, 100}));
  EXPECT_EQ(cost.streams, (MeasuredQuartiles{102, 102, 102}));
  EXPECT_EQ(cost.tracer, (MeasuredQuartiles{104, 104, 104}));
  EXPECT_EQ(cost.recorder, (MeasuredQuartiles{107, 107, 107}));
  EXPECT_EQ(cost.everything, (MeasuredQuartiles{110, 110, 110}));
  EXPECT_EQ(order.substr(0, 15), "ustreustreustre");
  EXPECT_DOUBLE_EQ(relative_cost(cost.untraced, cost.everything), 0.1);
}

/// Returns the number of steps of each kind for steps that take so long.
int steps_taken(Nanoseconds step) {
  int steps = 0;
  const auto untraced = [&] { return ++steps, step; };
  const auto others = [step] { return step; };
  measure_tracing_cost({untraced, others, others, others, others});
  return steps;
}

TEST(TracingCost, TakesFewerRoundsOfLongSteps) {
  EXPECT_EQ(steps_taken(1'000'000), 1 + 7);
  EXPECT_EQ(steps_taken(100'000'000), 1 + 5);
  EXPECT_EQ(steps_taken(1'000'000'000), 1 + 3);
}

}  // namespace
}  // namespace offprof
