#include "simulator/tuner/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/settings/family_search.h"
#include "tests/support/random_step.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Link kLink{{1e9, 10}, {1e9, 10}};

Trace trace_of(StepProgram program) {
  Trace trace;
  trace.program = std::move(program);
  return trace;
}

/// Layers of different sizes, so that thresholds matter. Copies take about as long as compute.
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

TuneGoal with_plans(TuneGoal goal) {
  goal.searches_plans = true;
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

TEST(Tune, NoPolicyOfACoarseGridIsBetterThanTheFrontier) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace);
  const Step step(trace.program);
  for (const Policy& policy : coarse_grid(movable_versions(step), {})) {
    const Metrics metrics = replay(step, policy, kLink).metrics;
    const bool matched = std::ranges::any_of(result.frontier, [&](const Candidate& candidate) {
      return peak_of(candidate) <= *metrics.device_peak_bytes && time_of(candidate) <= *metrics.step_time_ns;
    });
    EXPECT_TRUE(matched) << describe(policy);
  }
}

TEST(Tune, PredictionsEqualThoseOfAReplay) {
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
  trace.program = ChainSketch::program(12, 4000);
  trace.dense_program = ChainSketch::program(12, 5000);
  EXPECT_EQ(tuned(trace).trl.predicted,
            replay(Step(*trace.dense_program), preset_policy("trl"), kLink).metrics);
}

TEST(Tune, ReportsAnExactFrontierAndTheSettingsLeftOut) {
  const Trace trace = sample();
  const FamilySearch family = tuned(trace).family;
  EXPECT_TRUE(family.is_exact);
  EXPECT_LT(static_cast<double>(family.replayed), family.settings);
  EXPECT_EQ(tuned(trace).policies_tried, family.replayed + 1);  // plus keep
}

TEST(Tune, ReportsTheSlackOfItsFrontierIfWaitsTakeTime) {
  Trace trace = sample();
  EXPECT_EQ(tuned(trace).family.slack_ns, 0);
  trace.environment.calibration.emplace().event = {3, 3, 3};
  const FamilySearch family = tuned(trace).family;
  EXPECT_TRUE(family.is_whole);
  EXPECT_FALSE(family.is_exact);
  EXPECT_EQ(family.slack_ns, 6 * 3);
  trace.environment.calibration->standstills = {{100, {5, 5, 5}}, {300, {7, 7, 7}}};
  EXPECT_EQ(tuned(trace).family.slack_ns, 6 * (3 + 2 * 7));
}

TEST(Tune, IsNotExactIfCopiesMayDelayTheProgram) {
  Trace trace = sample();
  trace.program = beside_host(trace.program);
  EXPECT_TRUE(tuned(trace).family.is_exact);
  trace.program.stream_commands = {{.kind = StreamCommand::Kind::kCopyIn, .bytes = 100}};
  const TuneResult result = tuned(trace);
  EXPECT_TRUE(result.meets_copies);
  EXPECT_TRUE(result.family.is_whole);
  EXPECT_FALSE(result.family.is_exact);
}

TEST(Tune, IsDeterministic) {
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

TEST(Tune, ChoosesNothingIfNoPolicyFitsTheBudget) {
  const Trace trace = sample();
  const Bytes least = peak_of(tuned(trace).frontier.front());
  EXPECT_FALSE(tuned(trace, budget(least - 1)).chosen);
}

TEST(Tune, TheLeastMemoryIsTheReservedMemoryWithAnAllocator) {
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

TEST(Tune, ChoosesAPolicyAsFastAsKeepForNoSlowdown) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, slowdown(0));
  ASSERT_TRUE(result.chosen);
  EXPECT_LE(time_of(*result.chosen), time_of(result.keep));
}

TEST(Tune, IsAsFastAsKeepIfMovableTensorsHaveNoBytes) {
  const Trace trace = trace_of(ChainSketch::program(3, 0));
  for (const TuneGoal& goal : {slowdown(0.05), with_plans(slowdown(0.05)), with_plans(budget(2000))}) {
    const TuneResult result = tuned(trace, goal);
    ASSERT_TRUE(result.chosen);
    EXPECT_EQ(time_of(*result.chosen), time_of(result.keep));
  }
}

TEST(Tune, TriesAllPlansForFourteenTensorsOfALongStep) {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < 14; ++i) {
    layers.push_back({.bytes = 100 + 17 * ((5 * i) % 14), .forward_ns = 60, .backward_ns = 120});
    for (int j = 0; j < 6; ++j) layers.push_back({.bytes = 2, .saves_output = false});
  }
  const Trace trace = trace_of(ChainSketch::program(layers));
  ASSERT_GT(TraceSteps(trace).step({}).events().size(), 500U);
  const TuneResult result = tuned(trace, with_plans(budget(tuned(trace).device_peak_bound_bytes + 200)));
  EXPECT_EQ(result.plans->versions, 14U);
  EXPECT_TRUE(result.plans->is_exhaustive);
}

TEST(Tune, KeepsAllIfNothingMayMove) {
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

TEST(Tune, TheTimeBoundIsComputeWithoutWaits) {
  const Trace trace = sample();
  EXPECT_EQ(tuned(trace).step_time_bound_ns, time_of(tuned(trace).keep));
}

// --- Plans ---

TEST(Tune, OnlyAChosenPlanHasAFallback) {
  const Trace trace = sample();
  int plans = 0;
  for (Bytes bytes = 1200; bytes < 2400; bytes += 50) {
    const TuneResult result = tuned(trace, with_plans(budget(bytes)));
    const bool is_chosen = result.chosen && is_plan(*result.chosen);
    ASSERT_EQ(result.fallback.has_value(), is_chosen);
    if (!is_chosen) continue;
    ++plans;
    EXPECT_FALSE(is_plan(*result.fallback));
    EXPECT_EQ(result.fallback->predicted,
              replay(Step(trace.program), result.fallback->policy, kLink).metrics);
  }
  EXPECT_GT(plans, 0);
}

TEST(Tune, SearchesPlansOnlyOnRequest) {
  const Trace trace = sample();
  const TuneResult without = tuned(trace), with = tuned(trace, with_plans({}));
  EXPECT_FALSE(without.plans);
  EXPECT_FALSE(without.goal_bound);
  EXPECT_TRUE(std::ranges::none_of(without.frontier, is_plan));
  ASSERT_TRUE(with.plans);
  EXPECT_EQ(with.plans->versions, 6U);
  EXPECT_TRUE(with.plans->is_exhaustive);
}

TEST(Tune, PlansAreNeverWorseThanThresholds) {
  const Trace trace = sample();
  for (const Candidate& row : tuned(trace).frontier) {
    const TuneGoal goal = budget(peak_of(row));
    EXPECT_LE(time_of(*tuned(trace, with_plans(goal)).chosen), time_of(*tuned(trace, goal).chosen));
  }
}

TEST(Tune, APlanForManyTensorsIsWithinItsBudgetAndAboveItsBound) {
  std::vector<LayerSketch> layers;
  for (int i = 0; i < 40; ++i)
    layers.push_back({.bytes = 100 + 30 * (i % 5), .forward_ns = 60, .backward_ns = 120});
  const Trace trace = trace_of(ChainSketch::program(layers));
  for (const Bytes bytes : {2500, 3500, 5000}) {
    const TuneResult result = tuned(trace, with_plans(budget(bytes)));
    ASSERT_TRUE(result.chosen);
    EXPECT_FALSE(result.plans->is_exhaustive);
    EXPECT_LE(peak_of(*result.chosen), bytes);
    EXPECT_EQ(result.chosen->predicted, replay(Step(trace.program), result.chosen->policy, kLink).metrics);
    EXPECT_LE(result.goal_bound->value, static_cast<double>(time_of(*result.chosen)) + 1e-3);
    EXPECT_GE(result.goal_bound->gap, -1e-9);
  }
}

TEST(Tune, TheResultDoesNotDependOnTheNumberOfThreads) {
  const Trace trace = trace_of(ChainSketch::program(20, 100));
  const auto with_threads = [&](unsigned threads) {
    TuneGoal goal = with_plans(budget(2000));
    goal.threads = threads;
    return tuned(trace, goal);
  };
  const TuneResult one = with_threads(1), four = with_threads(4);
  ASSERT_EQ(one.frontier.size(), four.frontier.size());
  for (std::size_t i = 0; i < one.frontier.size(); ++i)
    EXPECT_EQ(one.frontier[i].policy, four.frontier[i].policy);
  EXPECT_EQ(one.chosen->policy, four.chosen->policy);
  EXPECT_EQ(one.policies_tried, four.policies_tried);
  EXPECT_EQ(one.effort.events, four.effort.events);
}

TEST(Tune, SharingReplaysChangesOnlyTheEffort) {
  const Trace trace = trace_of(ChainSketch::program(20, 100));
  TuneGoal goal = with_plans(budget(2000));
  const TuneResult shared = tuned(trace, goal);
  goal.shares_replays = false;
  const TuneResult apart = tuned(trace, goal);
  ASSERT_EQ(shared.frontier.size(), apart.frontier.size());
  for (std::size_t i = 0; i < shared.frontier.size(); ++i) {
    EXPECT_EQ(shared.frontier[i].policy, apart.frontier[i].policy);
    EXPECT_EQ(shared.frontier[i].predicted, apart.frontier[i].predicted);
  }
  EXPECT_EQ(shared.chosen->policy, apart.chosen->policy);
  EXPECT_EQ(shared.policies_tried, apart.policies_tried);
  EXPECT_EQ(apart.effort.events, apart.effort.whole_events);
  EXPECT_LT(shared.effort.events, apart.effort.events);
}

// --- Limits and prices ---

TEST(Tune, ReportsThePricesOfMemoryAndLink) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, budget(peak_of(tuned(trace).frontier.front())));
  ASSERT_TRUE(result.explanation.memory_price);
  EXPECT_GT(result.explanation.memory_price->more_bytes, 0);
  EXPECT_GT(result.explanation.memory_price->gain_ns, 0);
  EXPECT_FALSE(result.explanation.reliefs.empty());
  EXPECT_LT(time_of(result.explanation.link_price->best), time_of(*result.chosen));
  EXPECT_LE(peak_of(result.explanation.link_price->best), peak_of(*result.chosen));
}

TEST(Tune, NothingBindsIfNothingWaits) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, budget(1'000'000));
  EXPECT_TRUE(result.explanation.reliefs.empty());
  EXPECT_FALSE(result.explanation.memory_price);
  EXPECT_FALSE(result.explanation.fills_host);
}

TEST(Tune, TheBudgetBindsUnlessNothingIsFaster) {
  const Trace trace = sample();
  const TuneResult all = tuned(trace);
  EXPECT_EQ(tuned(trace, budget(peak_of(all.frontier.front()))).explanation.binding,
            GoalLimit::kDeviceMemory);
  EXPECT_EQ(tuned(trace, budget(peak_of(all.keep))).explanation.binding, GoalLimit::kNone);
}

TEST(Tune, TheSlowdownBindsUnlessNothingTakesLess) {
  const Trace trace = sample();
  EXPECT_EQ(tuned(trace, slowdown(0)).explanation.binding, GoalLimit::kSlowdown);
  EXPECT_EQ(tuned(trace, slowdown(50)).explanation.binding, GoalLimit::kNone);
}

TEST(Tune, AcceptsAnySlowdown) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, slowdown(1e300));
  ASSERT_TRUE(result.chosen);
  EXPECT_EQ(peak_of(*result.chosen), peak_of(result.frontier.front()));
}

// --- With a caching allocator ---

constexpr Bytes kParameters = 3 * kMiB;

/// Runs the step on a GPU whose allocator holds the parameters in a segment of 20 MiB.
Trace on_gpu(StepProgram program) {
  program.allocator.emplace().segments.push_back(
      {0, true, false, {{kParameters, kParameters, true, -1}, {20 * kMiB - kParameters, 0, false, -1}}});
  return trace_of(std::move(program));
}

/// Layers whose tensors fill the allocator's blocks and segments to different degrees.
Trace gpu_sample() {
  std::vector<LayerSketch> layers;
  for (const Bytes mebibytes : {3, 12, 7, 19, 2, 11, 5, 9})
    layers.push_back({.bytes = mebibytes * kMiB,
                      .scratch_bytes = kMiB,
                      .forward_ns = 5'000'000,
                      .backward_ns = 9'000'000});
  return on_gpu(ChainSketch::program(layers));
}

Bytes taken(const Candidate& candidate) {
  return device_bytes_taken(candidate.predicted);
}

TEST(Tune, TheFrontierCoversAllTriedPoliciesByAllocatorMemory) {
  const Trace trace = gpu_sample();
  const TraceSteps steps(trace);
  const TuneResult result = tuned(trace);
  Frontier by_peak;
  for (const Policy& policy : coarse_grid(movable_versions(steps.step({})), {})) {
    const Metrics metrics = steps.predict(policy, kLink);
    by_peak.add({policy, metrics});
    EXPECT_TRUE(std::ranges::any_of(result.frontier, [&](const Candidate& candidate) {
      return taken(candidate) <= device_bytes_taken(metrics) && time_of(candidate) <= *metrics.step_time_ns;
    })) << describe(policy);
  }
  // A frontier over the peak alone would have lost some of these.
  EXPECT_TRUE(std::ranges::any_of(result.frontier, [&](const Candidate& candidate) {
    return std::ranges::none_of(by_peak.candidates(), [&](const Candidate& other) {
      return taken(other) <= taken(candidate) && time_of(other) <= time_of(candidate);
    });
  }));
}

TEST(Tune, ChoosesByTheAllocatorsMemory) {
  const Trace trace = gpu_sample();
  const TuneResult all = tuned(trace);
  for (const Candidate& wanted : all.frontier) {
    const TuneResult within = tuned(trace, budget(taken(wanted)));
    ASSERT_TRUE(within.chosen);
    EXPECT_LE(taken(*within.chosen), taken(wanted));
    EXPECT_LE(time_of(*within.chosen), time_of(wanted));
  }
  const TuneResult slow = tuned(trace, slowdown(100));
  EXPECT_EQ(taken(*slow.chosen), taken(least_memory(slow)));
}

TEST(Tune, NothingIsExactWithAnAllocator) {
  const Trace trace = gpu_sample();
  const TuneResult result = tuned(trace, with_plans(budget(60 * kMiB)));
  EXPECT_FALSE(result.family.is_exact);
  EXPECT_FALSE(result.plans->is_exhaustive);
}

/// Three blocks, one after the other, of which none serves the next one. If memory is short, the cached ones
/// must be freed.
Trace reclaimable() {
  ProgramSketch sketch;
  for (const Bytes mebibytes : {30, 40, 50}) sketch.free(sketch.alloc(mebibytes * kMiB));
  Trace trace = on_gpu(sketch.program());
  trace.environment.device_memory_bytes = kGiB;
  return trace;
}

TEST(TraceSteps, AnAllocatorStaysWithinTheAssumedMemoryIfThatIsEnough) {
  const Trace trace = reclaimable();
  const Policy keep = preset_policy("keep");
  EXPECT_EQ(device_bytes_taken(TraceSteps(trace).predict(keep, kLink)), 140 * kMiB);
  const TraceSteps smaller(trace, usable_of_device(trace, 80 * kMiB));
  EXPECT_LE(device_bytes_taken(smaller.predict(keep, kLink)), 80 * kMiB);
  EXPECT_TRUE(smaller.fits(keep, 80 * kMiB));
}

TEST(TraceSteps, AnAllocatorTakesMoreIfMoreMemoryIsAssumed) {
  Trace trace = reclaimable();
  trace.environment.device_memory_bytes = 80 * kMiB;
  const Policy keep = preset_policy("keep");
  EXPECT_LE(device_bytes_taken(TraceSteps(trace).predict(keep, kLink)), 80 * kMiB);
  const TraceSteps larger(trace, MemoryCapacity{kGiB, kGiB});
  EXPECT_EQ(device_bytes_taken(larger.predict(keep, kLink)), 140 * kMiB);
}

// --- The host's memory ---

TEST(Tune, RespectsTheHostCap) {
  TuneGoal goal;
  goal.host_memory_bytes = 150;
  const Trace trace = sample();
  for (const Candidate& candidate : tuned(trace, goal).frontier)
    EXPECT_LE(*candidate.predicted.host_peak_bytes, 150);
}

// --- Placements ---

TEST(Tune, ChoosesPlacementsByTheGoal) {
  Link link = kLink;
  link.disk = {{1e9, 10}, {1e9, 10}};
  const Trace trace = sample();
  const double most = 0.05;
  const TuneResult slower = tune(TraceSteps(trace), link, slowdown(most));
  const auto limit = static_cast<double>(time_of(slower.keep)) * (1 + most);
  ASSERT_TRUE(slower.placements);
  EXPECT_LE(static_cast<double>(time_of(slower.placements->best)), limit);
  const TuneResult smaller = tune(TraceSteps(trace), link, budget(peak_of(slower.keep) - 100));
  ASSERT_TRUE(smaller.placements);
  EXPECT_LE(peak_of(smaller.placements->best), peak_of(slower.keep) - 100);
}

}  // namespace
}  // namespace offprof
