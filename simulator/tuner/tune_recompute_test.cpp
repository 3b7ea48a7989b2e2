// The tuner on steps whose tensors can be recomputed: plans together with recompute rules.
#include <gtest/gtest.h>

#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/tune.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Link kLink{{1e9, 10}, {1e9, 10}};
constexpr int kLayers = 12;
constexpr Nanoseconds kCheap = 4;

/// Two kinds of layers, one after the other: tensors of the one kind, `relu`, can be recomputed in `relu_ns`
/// each. Copying a tensor takes longer than its layer.
Trace sample(Nanoseconds relu_ns = kCheap) {
  std::vector<LayerSketch> layers(kLayers, {.bytes = 100, .forward_ns = 60, .backward_ns = 120});
  Trace trace;
  StepProgram& program = trace.program;
  program = ChainSketch::program(layers);
  program.names.insert(program.names.end(), {"aten::relu", "aten::mm"});
  program.recomputations.emplace();
  for (std::int32_t i = 0; i < kLayers; ++i) {
    const bool is_relu = i % 2 == 1;
    program.saved[i].op = static_cast<std::int32_t>(program.names.size()) - (is_relu ? 2 : 1);
    if (!is_relu) continue;
    program.recomputations->push_back({i, "aten::relu", {i - 1}, {{{100, -1}}, relu_ns}});
  }
  return trace;
}

TuneResult tuned(const Trace& trace, Bytes budget) {
  TuneGoal goal;
  goal.memory_budget_bytes = budget;
  goal.searches_plans = true;
  return tune(TraceSteps(trace), kLink, goal);
}

Nanoseconds time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}

/// Returns the best step time within the budget if nothing can be recomputed; very long if there is none.
Nanoseconds best_moving(Bytes budget) {
  Trace trace = sample();
  trace.program.recomputations.reset();
  const TuneResult result = tuned(trace, budget);
  return result.chosen ? time_of(*result.chosen) : 1'000'000;
}

Policy recomputes_all() {
  Policy policy = preset_policy("keep");
  policy.rules.emplace_back().placement.place = Place::kRecompute;
  return policy;
}

/// A budget that is out of reach of recomputation alone.
Bytes tight_budget(const Trace& trace) {
  return *replay(Step(trace.program), recomputes_all(), kLink).metrics.device_peak_bytes - 250;
}

TEST(TuneRecompute, MixesAPlanWithRules) {
  const Trace trace = sample();
  const Bytes budget = tight_budget(trace);
  const TuneResult result = tuned(trace, budget);
  ASSERT_TRUE(result.chosen);
  EXPECT_TRUE(has_rules(*result.chosen));
  EXPECT_TRUE(is_plan(*result.chosen));
  EXPECT_FALSE(result.chosen->policy.tensors->empty());
  EXPECT_LE(*result.chosen->predicted.device_peak_bytes, budget);
  EXPECT_EQ(result.chosen->predicted, replay(Step(trace.program), result.chosen->policy, kLink).metrics);
  EXPECT_LT(time_of(*result.chosen), best_moving(budget));
  EXPECT_EQ(result.plans->mixtures, 1U);
}

TEST(TuneRecompute, DoesNotRecomputeWhereMovingIsFaster) {
  const Trace trace = sample(10'000);
  const TuneResult result = tuned(trace, tight_budget(trace));
  ASSERT_TRUE(result.chosen);
  EXPECT_FALSE(has_rules(*result.chosen));
}

TEST(TuneRecompute, KeepsAllIfTheBudgetAllowsIt) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, 10'000);
  ASSERT_TRUE(result.chosen);
  EXPECT_EQ(time_of(*result.chosen), time_of(result.keep));
}

TEST(TuneRecompute, TheBoundHoldsForPoliciesThatRecompute) {
  const Trace trace = sample();
  const TuneResult result = tuned(trace, tight_budget(trace));
  ASSERT_TRUE(result.goal_bound);
  EXPECT_EQ(result.goal_bound->family, BoundFamily::kOffloadAndRecompute);
  EXPECT_LE(result.goal_bound->value, static_cast<double>(time_of(*result.chosen)));
  Trace without = trace;
  without.program.recomputations.reset();
  const TuneResult moves = tuned(without, 1800);
  ASSERT_TRUE(moves.goal_bound);
  EXPECT_EQ(moves.goal_bound->family, BoundFamily::kOffload);
}

}  // namespace
}  // namespace offprof
