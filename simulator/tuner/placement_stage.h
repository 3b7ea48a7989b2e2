#pragma once

#include <optional>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/placement_search.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {

/// Searches assignments of placements to groups of tensors for the goal, from the policy that the other
/// searches chose. Returns nullopt if the trace and the link know of no placement but the device and host
/// memory.
std::optional<PlacementSearchResult> search_placements(const TuneInputs& inputs, const GoalOrder& order,
                                                       const std::optional<Candidate>& chosen);

}  // namespace offprof
