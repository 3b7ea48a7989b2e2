#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/plans/recompute_groups.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/tune_inputs.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

struct PlanStageResult {
  PlanSearchSummary summary;
  std::vector<Candidate> followed;  ///< see PaceSearchResult
  ReplayEffort effort;
};

/// Called with a phrase for each part of a search.
using StageProgress = std::function<void(const std::string&)>;

/// Searches for plans, also together with rules that recompute tensors, on a fixed ladder of budgets. So the
/// candidates, which go into `peaks`, are the same for all goals, and the best of them for a larger budget is
/// never slower. `peaks` has the candidates so far, at least one. PlanSearchSummary::is_exhaustive is true
/// only if the search also `goes_by_facts`.
PlanStageResult search_plans(const TuneInputs& inputs, const PlanSpace& space, bool goes_by_facts,
                             Frontier& peaks, const StageProgress& progress);

/// Computes the lower bound for the goal that `chosen` reaches, for the family of policies that was searched:
/// see GoalBound.
GoalBound bound_for_goal(const TuneInputs& inputs, const GoalOrder& order, const PlanSpace& space,
                         const Candidate& chosen);

}  // namespace offprof
