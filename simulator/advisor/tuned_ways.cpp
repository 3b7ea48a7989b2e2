#include "simulator/advisor/tuned_ways.h"

#include "simulator/tuner/tune.h"

namespace offprof {
namespace {

/// Slowdown that stands for no limit.
constexpr double kNoSlowdownLimit = 100;

}  // namespace

std::optional<TuneResult> tune_step(const PreparedStep& step, const AdviceGoal& goal, unsigned threads) {
  TuneGoal tune_goal;
  tune_goal.searches_plans = true;
  tune_goal.threads = threads;
  tune_goal.device_memory_bytes = goal.most_memory;
  if (goal.objective == Objective::kTime) {
    tune_goal.memory_budget_bytes = goal.most_memory;
  } else if (!goal.most_time) {
    tune_goal.max_slowdown = kNoSlowdownLimit;
  } else {
    // The limit is relative to doing nothing; that of the tuner to keeping everything in this step.
    const Metrics keep = step.steps.predict(preset_policy("keep"), step.link);
    tune_goal.max_slowdown =
        static_cast<double>(*goal.most_time) / static_cast<double>(*keep.step_time_ns) - 1;
    if (tune_goal.max_slowdown < 0) return std::nullopt;
  }
  return tune(step.steps, step.link, tune_goal);
}

std::vector<NamedCandidate> single_ways(const TuneResult& tuned, const AdviceGoal& goal) {
  std::vector<NamedCandidate> ways = {{"TRL's and torchtune's defaults", tuned.trl}};
  const auto add_best = [&](const std::string& name, const std::vector<Candidate>& among, auto belongs) {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : among)
      if (belongs(candidate) &&
          (best == nullptr || rank_of(candidate.predicted, goal) < rank_of(best->predicted, goal)))
        best = &candidate;
    if (best != nullptr) ways.push_back({name, *best});
  };
  add_best("offload by a threshold", tuned.by_threshold,
           [](const Candidate& c) { return c.policy.threshold_bytes && !has_rules(c); });
  // A threshold is a plan too. The search looks for plans with recomputations where they are better, and what
  // it has left of the others may be far from the goal.
  const GoalRank by_threshold = ways.size() > 1 ? rank_of(ways.back().candidate.predicted, goal) : kWorstRank;
  add_best("offload by a plan", tuned.frontier, [&](const Candidate& c) {
    return is_plan(c) && !has_rules(c) && rank_of(c.predicted, goal) < by_threshold;
  });
  add_best("recompute and offload by a plan", tuned.frontier,
           [](const Candidate& c) { return is_plan(c) && has_rules(c); });
  if (tuned.placements && has_rules(tuned.placements->best))
    ways.push_back({"rules: recompute, offload, keep", tuned.placements->best});
  return ways;
}

}  // namespace offprof
