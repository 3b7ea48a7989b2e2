#pragma once

#include <optional>
#include <vector>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/placement_search.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {

struct PlacementStageResult {
  PlacementSearchResult placements;
  std::vector<Candidate> candidates;  ///< the best for each budget, and the placements alone
};

/// Searches assignments of placements to groups of tensors for budgets that depend on `frontier` alone, so
/// that the candidates are the same for all goals. `frontier` has the candidates of the other searches, over
/// device memory taken and step time; each budget begins with the best of them. Returns nullopt if the trace
/// and the link know of no placement but the device and host memory. If plans were searched together with
/// recomputation, no other placement is known, then placements are only tried alone.
std::optional<PlacementStageResult> search_placements(const TuneInputs& inputs, const GoalOrder& order,
                                                      const std::vector<Candidate>& frontier);

}  // namespace offprof
