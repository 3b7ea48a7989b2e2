#include "simulator/tuner/tune.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/tuner/choice_explanation.h"
#include "simulator/tuner/device_frontier.h"
#include "simulator/tuner/family_stage.h"
#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/placement_stage.h"
#include "simulator/tuner/plan_stage.h"
#include "simulator/tuner/rule_policy.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {
namespace {

using Progress = std::function<void(const std::string&)>;

PlanSpace plan_space_of(const Step& step) {
  PlanSpace space;
  space.versions = movable_versions(step);
  space.least = least_memory_of(step, space.versions);
  return space;
}

void replay_presets(const TuneInputs& inputs, const LeastMemory& least, Frontier& peaks, TuneResult& result) {
  const Policy keep = preset_policy("keep"), trl = preset_policy("trl");
  const Candidate kept{keep, replay(inputs.step, keep, inputs.link).metrics};
  peaks.add(kept);
  result.policies_tried = 1;
  result.keep = {keep, inputs.steps.with_cache(keep, kept.predicted)};
  result.trl = {trl, inputs.steps.predict(trl, inputs.link)};
  result.device_peak_bound_bytes = least.peak;
  result.least_peak_event = least.peak_event;
  result.step_time_bound_ns = step_time_of(result.keep);
  result.slows_compute = inputs.step.costs().slowdown_ns_per_byte > 0;
  result.meets_copies = inputs.step.meets_copies();
}

/// Searches the family. Discards `space` unless plans are searched: for a long step it is a lot of memory,
/// and replays are still to come.
void add_family(const TuneInputs& inputs, PlanSpace& space, Frontier& peaks, TuneResult& result) {
  const FamilyPlan plan = plan_family(inputs, space.versions);
  if (!inputs.goal.searches_plans) space = {};
  const FamilyStageResult found = search_family(inputs, plan, peaks);
  result.family = found.summary;
  result.policies_tried += found.summary.replayed;
  result.effort += found.effort;
}

void add_plans(const PlanStageResult& found, TuneResult& result) {
  result.plans = found.summary;
  result.policies_tried += found.summary.replayed;
  result.effort += found.effort;
}

/// Adds the candidates with rules to the frontier.
void add_placements(PlacementStageResult found, const GoalOrder& order, TuneResult& result) {
  result.policies_tried += found.placements.replayed;
  for (const Candidate& candidate : found.candidates) result.frontier.push_back(candidate);
  result.frontier = frontier_by_taken(std::move(result.frontier));
  result.placements = std::move(found.placements);
  for (const Candidate& candidate : found.candidates)
    if (order.distance(candidate) < order.distance(result.placements->best))
      result.placements->best = candidate;
}

/// Returns true if the policy keeps, moves or recomputes tensors, and does nothing else with them.
bool has_bound(const Candidate& candidate) {
  return std::ranges::all_of(candidate.policy.rules, [](const PolicyRule& rule) {
    return rule.placement.transform.empty() && !takes_disk(rule.placement.place);
  });
}

/// Searches for the policy that takes the place of the chosen one in other programs.
void add_fallback(const TuneInputs& inputs, const GoalOrder& order,
                  const std::optional<Candidate>& by_threshold, TuneResult& result) {
  const RulePolicySearch found = search_rule_policies(inputs, order, *result.chosen, by_threshold);
  result.fallback = found.best;
  result.policies_tried += found.replayed;
}

}  // namespace

TuneResult tune(const TraceSteps& steps, const Link& link, const TuneGoal& goal, const Progress& progress) {
  TuneResult result;
  const auto begin_stage = [&](const std::string& what) {
    const std::string so_far = "; " + std::to_string(result.policies_tried) + " policies replayed so far";
    progress(result.policies_tried > 0 ? what + so_far : what);
  };
  const TuneInputs inputs = make_tune_inputs(steps, link, goal);
  PlanSpace space = plan_space_of(inputs.step);
  DeviceFrontier device_frontier(inputs);
  Frontier peaks(device_frontier.runners_up());

  begin_stage("replaying presets");
  replay_presets(inputs, space.least, peaks, result);
  const GoalOrder order(goal, steps, step_time_of(result.keep));

  begin_stage("trying thresholds, stash sizes and prefetch windows");
  add_family(inputs, space, peaks, result);
  result.by_threshold = device_frontier.from_peaks(peaks);

  if (goal.searches_plans) {
    begin_stage("searching plans");
    const bool is_certain = goes_by_facts(inputs, result.family.slack_ns);
    PlanStageResult plans = search_plans(inputs, space, is_certain, peaks, begin_stage);
    add_plans(plans, result);
    device_frontier.add_followed(std::move(plans.followed));
  }
  result.frontier = device_frontier.from_peaks(peaks);

  begin_stage("searching placements");
  if (auto found = search_placements(inputs, order, result.frontier))
    add_placements(std::move(*found), order, result);
  result.chosen = order.choose(result.frontier);
  if (goal.searches_plans && result.chosen && has_bound(*result.chosen)) {
    begin_stage("computing the lower bound");
    result.goal_bound = bound_for_goal(inputs, order, space, *result.chosen);
  }

  if (result.chosen && is_plan(*result.chosen)) {
    begin_stage("searching rules near the plan");
    add_fallback(inputs, order, order.choose(result.by_threshold), result);
  }

  begin_stage("explaining the chosen policy");
  if (result.chosen) result.explanation = explain_choice(inputs, order, result.frontier, *result.chosen);
  return result;
}

}  // namespace offprof
