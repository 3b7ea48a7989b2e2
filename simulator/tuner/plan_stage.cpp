#include "simulator/tuner/plan_stage.h"

#include <algorithm>

#include "simulator/tuner/plans/plan_bound.h"
#include "simulator/tuner/plans/plan_search.h"

namespace offprof {
namespace {

constexpr std::size_t kPlanEvents = 100'000'000;
/// A search of all plans may take longer.
constexpr std::size_t kFewPlanEvents = 400'000'000, kMostExhaustiveReplays = 1'000'000;
/// Upper bound on the runs of the search. It aims at a lower peak if a caching allocator takes more than the
/// peak.
constexpr std::size_t kMostAims = 3;

bool may_aim_lower(const TuneInputs& inputs) {
  return inputs.goal.memory_budget_bytes && inputs.step.allocator();
}

PlanSearch::Limits limits_of(const TuneInputs& inputs, std::size_t versions) {
  PlanSearch::Limits limits;
  const bool is_small = versions <= limits.exhaustive_versions;
  limits.replays =
      is_small ? inputs.replays_of(kFewPlanEvents, kMostExhaustiveReplays) : inputs.replays_of(kPlanEvents);
  limits.runs = may_aim_lower(inputs) ? kMostAims : 1;
  limits.threads = inputs.goal.threads;
  limits.shares = inputs.goal.shares_replays;
  return limits;
}

/// Returns the peak to aim at next: the peak of `best`, the best plan for the last aim, minus the excess of
/// its allocator memory over the budget. nullopt: that is not possible or not needed.
std::optional<Bytes> lower_peak(const TuneInputs& inputs, const std::optional<Candidate>& chosen,
                                const Candidate& best, Bytes least_peak) {
  if (chosen && chosen->policy == best.policy) return std::nullopt;
  const Bytes over = taken_by(best) - *inputs.goal.memory_budget_bytes;
  if (over <= 0) return std::nullopt;
  const Bytes peak = *best.predicted.device_peak_bytes - over;
  return peak >= least_peak ? std::optional(peak) : std::nullopt;
}

/// `reached`: metrics of a policy that keeps to the aim.
PlanBound bound_for(const PlanRelaxation& relaxation, const Aim& aim, const Metrics& reached) {
  if (aim.most_peak) return relaxation.least_time(*aim.most_peak, *reached.step_time_ns);
  return relaxation.least_peak(*aim.most_time, *reached.device_peak_bytes);
}

GoalBound bound_of(const Candidate& chosen, const GoalOrder& order, const PlanRelaxation& relaxation,
                   Bytes least_peak) {
  const Aim aim = order.aim();
  const auto reached = static_cast<double>(aim.most_peak ? step_time_of(chosen) : taken_by(chosen));
  const PlanBound bound = bound_for(relaxation, aim, chosen.predicted);
  const double value =
      std::max(bound.value, static_cast<double>(aim.most_peak ? order.keep_time() : least_peak));
  return {value, value > 0 ? (reached - value) / value : 0, bound.rows};
}

}  // namespace

PlanStageResult search_plans(const TuneInputs& inputs, const GoalOrder& order, const PlanSpace& space,
                             bool goes_by_facts, Frontier& peaks, DeviceFrontier& device_frontier) {
  const PlanRelaxation relaxation(inputs.step, inputs.link, space.versions, space.least,
                                  inputs.goal.host_memory_bytes);
  PlanSearch search(inputs.step, inputs.link, space.versions, inputs.base, peaks,
                    limits_of(inputs, space.versions.size()));
  PlanStageResult result;
  Aim aim = order.aim();
  for (std::size_t i = 0; i < kMostAims; ++i) {
    search.run(aim, bound_for(relaxation, aim, peaks.best(aim).predicted).moved);
    result.frontier = device_frontier.from_peaks(peaks);
    result.chosen = order.choose(result.frontier);
    if (!may_aim_lower(inputs)) break;
    const Candidate best = device_frontier.with_allocator(peaks.best(aim));
    aim.most_peak = lower_peak(inputs, result.chosen, best, space.least.peak);
    if (!aim.most_peak) break;
  }
  const bool is_whole = search.is_exhaustive();
  result.summary = {space.versions.size(), search.replays(), is_whole, is_whole && goes_by_facts};
  result.effort = search.effort();
  if (result.chosen) result.bound = bound_of(*result.chosen, order, relaxation, space.least.peak);
  return result;
}

}  // namespace offprof
