// Properties of the tuner over random step programs, links and goals.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "simulator/tuner/tune.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 50;

TuneResult tuned(const TraceSteps& steps, const Link& link, TuneGoal goal) {
  goal.searches_plans = true;
  return tune(steps, link, goal);
}

TuneGoal budget(Bytes bytes) {
  TuneGoal goal;
  goal.memory_budget_bytes = bytes;
  return goal;
}

Bytes taken(const Candidate& candidate) {
  return device_bytes_taken(candidate.predicted);
}
Nanoseconds time_of(const Candidate& candidate) {
  return *candidate.predicted.step_time_ns;
}

struct Case {
  Trace trace;
  Link link;
};

Case any_case() {
  Case made{{}, random_link()};
  StepProgram& program = made.trace.program;
  program = random_chain(5, kMostBytes);
  if (*rc::gen::arbitrary<bool>()) {
    const auto factor = static_cast<double>(move_to_gpu(program));
    made.link.d2h.bytes_per_second *= factor;
    made.link.h2d.bytes_per_second *= factor;
  }
  if (*rc::gen::inRange(0, 3) != 0) add_recomputations(program);
  return made;
}

/// Returns a budget from below the step program's own memory to the memory of keeping all tensors.
Bytes any_budget(const TraceSteps& steps, const Link& link) {
  const TuneResult all = tune(steps, link, {});
  const Bytes least = all.device_peak_bound_bytes - all.device_peak_bound_bytes / 20;
  return *rc::gen::inRange(least, taken(all.keep) + 1);
}

RC_GTEST_PROP(TuneProperty, NeverGoesOverTheBudgetNorBelowTheBound, ()) {
  const Case random = any_case();
  const TraceSteps steps(random.trace);
  const Bytes bytes = any_budget(steps, random.link);
  const TuneResult result = tuned(steps, random.link, budget(bytes));
  if (!result.chosen) return;
  RC_ASSERT(taken(*result.chosen) <= bytes);
  RC_ASSERT(result.goal_bound->value <= static_cast<double>(time_of(*result.chosen)) + 1e-3);
}

RC_GTEST_PROP(TuneProperty, MoreBudgetNeverPredictsASlowerStep, ()) {
  const Case random = any_case();
  const TraceSteps steps(random.trace);
  std::vector<Bytes> budgets;
  for (int i = 0; i < 3; ++i) budgets.push_back(any_budget(steps, random.link));
  std::ranges::sort(budgets);
  std::optional<Nanoseconds> before;
  for (const Bytes bytes : budgets) {
    const TuneResult result = tuned(steps, random.link, budget(bytes));
    RC_ASSERT(!before || result.chosen);
    if (!result.chosen) continue;
    if (before) RC_ASSERT(time_of(*result.chosen) <= *before);
    before = time_of(*result.chosen);
  }
}

RC_GTEST_PROP(TuneProperty, MoreSlowdownNeverPredictsMoreMemory, ()) {
  const Case random = any_case();
  const TraceSteps steps(random.trace);
  std::vector<int> percents = *rc::gen::container<std::vector<int>>(3, rc::gen::inRange(0, 200));
  std::ranges::sort(percents);
  std::optional<Bytes> before;
  for (const int percent : percents) {
    TuneGoal goal;
    goal.max_slowdown = percent / 100.0;
    const TuneResult result = tuned(steps, random.link, goal);
    RC_ASSERT(result.chosen);  // keeping everything is within any slowdown
    if (before) RC_ASSERT(taken(*result.chosen) <= *before);
    before = taken(*result.chosen);
  }
}

RC_GTEST_PROP(TuneProperty, AFasterLinkNeverPredictsASlowerStep, ()) {
  Trace trace;
  trace.program = random_chain(4, kMostBytes);
  const Link link = random_link();
  const TraceSteps steps(trace);
  const TuneGoal goal = budget(any_budget(steps, link));
  Link faster = link;
  faster.d2h.bytes_per_second *= *rc::gen::inRange(1, 5);
  faster.h2d.bytes_per_second *= *rc::gen::inRange(1, 5);
  const TuneResult slow = tuned(steps, link, goal), fast = tuned(steps, faster, goal);
  RC_ASSERT(slow.chosen.has_value() == fast.chosen.has_value());
  if (slow.chosen) RC_ASSERT(time_of(*fast.chosen) <= time_of(*slow.chosen));
}

}  // namespace
}  // namespace offprof
