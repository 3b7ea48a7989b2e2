#pragma once

#include <optional>
#include <vector>

#include "simulator/tuner/device_frontier.h"
#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/tune_inputs.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// Storage contents that plans select among, and the memory that is used whichever of them move.
struct PlanSpace {
  std::vector<MovableVersion> versions;
  LeastMemory least;
};

struct PlanStageResult {
  PlanSearchSummary summary;
  ReplayEffort effort;
  std::vector<Candidate> frontier;  ///< over device memory taken and step time
  std::optional<Candidate> chosen;  ///< nullopt: none is within the goal's limit
  std::optional<GoalBound> bound;   ///< set if `chosen` is
};

/// Searches for plans, and computes the lower bound for the goal. `peaks` has the candidates so far, at least
/// one, and gets the new ones. PlanSearchSummary::is_exhaustive is true only if the search also
/// `goes_by_facts`.
PlanStageResult search_plans(const TuneInputs& inputs, const GoalOrder& order, const PlanSpace& space,
                             bool goes_by_facts, Frontier& peaks, DeviceFrontier& device_frontier);

}  // namespace offprof
