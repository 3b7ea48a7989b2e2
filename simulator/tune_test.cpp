#include "simulator/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "simulator/replay.h"
#include "simulator/sample_program.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;

constexpr Link kLink{{1e9, 10}, {1e9, 10}};

Trace trace_of(Program program) {
  Trace trace;
  trace.program = std::move(program);
  return trace;
}

/// Layers of different sizes, so that thresholds matter; copies take about as long as compute.
Trace sample() {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < 6; ++i) {
    LayerSketch layer;
    layer.bytes = 100 + 60 * (i % 3);
    layer.forward_ns = 80;
    layer.backward_ns = 200;
    layers.push_back(layer);
  }
  return trace_of(ChainSketch::program(layers));
}

TuneResult tuned(const Trace& trace, const TuneGoal& goal = {}) {
  return tune(TraceSteps(trace), kLink, goal);
}

TuneGoal budget(Bytes bytes) {
  TuneGoal goal;
  goal.memory_budget_bytes = bytes;
  return goal;
}

TuneGoal slowdown(double most) {
  TuneGoal goal;
  goal.max_slowdown = most;
  return goal;
}

Bytes peak_of(const Candidate& candidate) {
  return *candidate.predicted.device_peak_bytes;
}
Nanoseconds time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}

// --- The frontier ---

TEST(Tune, TheFrontierTradesMemoryForTime) {
  const Trace trace = sample();
  const std::vector<Candidate> frontier = tuned(trace).frontier;
  ASSERT_GE(frontier.size(), 3U);
  for (std::size_t i = 1; i < frontier.size(); ++i) {
    EXPECT_GT(peak_of(frontier[i]), peak_of(frontier[i - 1]));
    EXPECT_LT(time_of(frontier[i]), time_of(frontier[i - 1]));
  }
}

TEST(Tune, NoPolicyOfTheGridIsBetterThanTheFrontier) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace);
  const Step step(trace.program);
  for (const Policy& policy : policy_grid(step, {})) {
    const Metrics metrics = replay(step, policy, kLink).metrics;
    const bool matched = std::ranges::any_of(result.frontier, [&](const Candidate& candidate) {
      return peak_of(candidate) <= *metrics.device_peak_bytes && time_of(candidate) <= *metrics.step_time_ns;
    });
    EXPECT_TRUE(matched) << describe(policy);
  }
}

TEST(Tune, PredictsWhatAReplayPredicts) {
  const Trace trace = sample();
  const Step step(trace.program);
  for (const Candidate& candidate : tuned(trace).frontier)
    EXPECT_EQ(candidate.predicted, replay(step, candidate.policy, kLink).metrics);
}

TEST(Tune, ComparesWithKeepAndTrl) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace);
  EXPECT_EQ(result.keep.policy, preset_policy("keep"));
  EXPECT_EQ(result.trl.policy, preset_policy("trl"));
  EXPECT_EQ(result.keep.predicted, replay(Step(trace.program), preset_policy("keep"), kLink).metrics);
}

TEST(Tune, PredictsTrlOnTheDenseProgram) {
  Trace trace = sample();
  trace.dense_program = ChainSketch::program(2, 5000);
  EXPECT_EQ(tuned(trace).trl.predicted,
            replay(Step(*trace.dense_program), preset_policy("trl"), kLink).metrics);
}

TEST(Tune, TriesTheWholeGrid) {
  const Trace trace = sample();
  EXPECT_EQ(tuned(trace).policies_tried, policy_grid(Step(trace.program), {}).size());
}

TEST(Tune, GivesTheSameAnswerEachTime) {
  const Trace trace = sample();
  const TuneResult first = tuned(trace), second = tuned(trace);
  ASSERT_EQ(first.frontier.size(), second.frontier.size());
  for (std::size_t i = 0; i < first.frontier.size(); ++i) {
    EXPECT_EQ(first.frontier[i].policy, second.frontier[i].policy);
    EXPECT_EQ(first.frontier[i].predicted, second.frontier[i].predicted);
  }
  EXPECT_EQ(first.chosen->policy, second.chosen->policy);
}

// --- The choice ---

TEST(Tune, ChoosesTheFastestWithinABudget) {
  const Trace trace = sample();
  const TuneResult all = tuned(trace);
  for (const Candidate& wanted : all.frontier) {
    const TuneResult result = tuned(trace, budget(peak_of(wanted)));
    ASSERT_TRUE(result.chosen);
    EXPECT_EQ(peak_of(*result.chosen), peak_of(wanted));
    EXPECT_EQ(time_of(*result.chosen), time_of(wanted));
  }
}

TEST(Tune, NeverChoosesAPolicyOverTheBudget) {
  const Trace trace = sample();
  const TuneResult all = tuned(trace);
  for (Bytes bytes = peak_of(all.frontier.front()); bytes <= peak_of(all.keep); bytes += 7) {
    const TuneResult result = tuned(trace, budget(bytes));
    ASSERT_TRUE(result.chosen);
    EXPECT_LE(peak_of(*result.chosen), bytes);
  }
}

TEST(Tune, ChoosesNothingWhereNoPolicyFitsTheBudget) {
  const Trace trace = sample();
  const Bytes least = peak_of(tuned(trace).frontier.front());
  EXPECT_FALSE(tuned(trace, budget(least - 1)).chosen);
}

TEST(Tune, TheLeastMemoryIsWhatAnAllocatorReservesWhereThereIsOne) {
  const auto candidate = [](Bytes peak, std::optional<Bytes> reserved) {
    Candidate made;
    made.predicted.device_peak_bytes = peak;
    made.predicted.device_reserved_peak_bytes = reserved;
    return made;
  };
  TuneResult result;
  result.frontier = {candidate(10, std::nullopt), candidate(20, std::nullopt)};
  EXPECT_EQ(peak_of(least_memory(result)), 10);
  result.frontier = {candidate(10, 400), candidate(20, 200)};
  EXPECT_EQ(peak_of(least_memory(result)), 20);
}

TEST(Tune, ChoosesTheLeastMemoryWithinASlowdown) {
  const Trace trace = sample();
  const TuneResult all = tuned(trace);
  const auto keep_time = static_cast<double>(time_of(all.keep));
  for (const Candidate& wanted : all.frontier) {
    const double most = static_cast<double>(time_of(wanted)) / keep_time - 1 + 1e-9;
    const TuneResult result = tuned(trace, slowdown(most));
    ASSERT_TRUE(result.chosen);
    EXPECT_EQ(peak_of(*result.chosen), peak_of(wanted));
  }
}

TEST(Tune, WithoutSlowdownChoosesSomethingAsFastAsKeep) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, slowdown(0));
  ASSERT_TRUE(result.chosen);
  EXPECT_LE(time_of(*result.chosen), time_of(result.keep));
}

TEST(Tune, WhereNothingMayMoveKeepsAll) {
  const Trace trace = trace_of(ChainSketch::program({LayerSketch{.output_stays = true}}));
  const TuneResult result = tuned(trace);
  EXPECT_EQ(result.policies_tried, 1U);
  EXPECT_EQ(result.chosen->policy, preset_policy("keep"));
}

// --- Bounds ---

TEST(Tune, NoPolicyIsBelowTheBounds) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace);
  for (const Candidate& candidate : result.frontier) {
    EXPECT_GE(peak_of(candidate), result.device_peak_bound_bytes);
    EXPECT_GE(time_of(candidate), result.step_time_bound_ns);
  }
}

TEST(Tune, TheMemoryBoundIsWhatTheProgramAndItsNodesHold) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  const std::int32_t buffer = sketch.alloc(30);
  const SavedId stays = sketch.save(buffer, 0, Movability::kBuffer);
  sketch.free(x);
  sketch.free(buffer);
  const std::int32_t gradient = sketch.alloc(7);  // beside it what may not move, and then x for its node
  sketch.node(a);
  sketch.node(stays);
  sketch.free(gradient);
  EXPECT_EQ(tuned(trace_of(sketch.program())).device_peak_bound_bytes, 1000 + 7 + 30 + 100);
}

TEST(Tune, TheMemoryBoundCountsATensorThatIsUnpackedTwiceOnce) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.escapes(a);
  sketch.free(x);
  sketch.unpack(a);
  sketch.unpack(a);
  sketch.node_end();
  sketch.release(a);
  sketch.let_go(a);
  sketch.free(sketch.alloc(50));
  EXPECT_EQ(tuned(trace_of(sketch.program())).device_peak_bound_bytes, 1100);
}

TEST(Tune, TheTimeBoundIsComputeWithoutWaits) {
  const Trace trace = sample();
  EXPECT_EQ(tuned(trace).step_time_bound_ns, time_of(tuned(trace).keep));
}

// --- The grid ---

TEST(PolicyGrid, BeginsWithKeep) {
  const Trace trace = sample();
  EXPECT_EQ(policy_grid(Step(trace.program), {}).front(), preset_policy("keep"));
}

TEST(PolicyGrid, TakesItsThresholdsFromTheSizesThatAreSaved) {
  const Trace trace = sample();
  std::set<Bytes> thresholds;
  for (const Policy& policy : policy_grid(Step(trace.program), {}))
    if (policy.threshold_bytes) thresholds.insert(*policy.threshold_bytes);
  EXPECT_THAT(thresholds, ElementsAre(100, 160, 220));
}

TEST(PolicyGrid, TakesFewOfManyThresholds) {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < 200; ++i) layers.push_back({.bytes = 1000 + i});
  const Program program = ChainSketch::program(layers);
  std::set<Bytes> thresholds;
  for (const Policy& policy : policy_grid(Step(program), {}))
    if (policy.threshold_bytes) thresholds.insert(*policy.threshold_bytes);
  EXPECT_LE(thresholds.size(), 30U);
  EXPECT_THAT(thresholds, AllOf(Contains(1000), Contains(1199)));  // all, and the largest alone
}

TEST(PolicyGrid, HasNoStashLargerThanItsCopies) {
  const Program program = ChainSketch::program(2, 100);
  std::set<std::int64_t> stashes;
  for (const Policy& policy : policy_grid(Step(program), {})) stashes.insert(policy.stash_count.value_or(0));
  EXPECT_THAT(stashes, ElementsAre(0, 1, 2));
}

TEST(PolicyGrid, ItsWindowsGoFromTheLargestCopyToAllOfThem) {
  const Program program = ChainSketch::program(3, 100);
  std::set<Bytes> windows;
  for (const Policy& policy : policy_grid(Step(program), {})) windows.insert(policy.prefetch_bytes);
  EXPECT_THAT(windows, ElementsAre(0, 100, 200, 400));
}

TEST(PolicyGrid, GivesEveryPolicyTheHostCap) {
  TuneGoal goal;
  goal.host_memory_bytes = 150;
  const Program program = ChainSketch::program(3, 100);
  const std::vector<Policy> grid = policy_grid(Step(program), goal);
  for (std::size_t i = 1; i < grid.size(); ++i) EXPECT_EQ(grid[i].host_memory_bytes, 150);
}

TEST(Tune, ObeysTheHostCap) {
  TuneGoal goal;
  goal.host_memory_bytes = 150;
  const Trace trace = sample();
  for (const Candidate& candidate : tuned(trace, goal).frontier)
    EXPECT_LE(*candidate.predicted.host_peak_bytes, 150);
}

}  // namespace
}  // namespace offprof
