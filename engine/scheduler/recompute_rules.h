#pragma once

#include <cstddef>
#include <vector>

#include "engine/scheduler/resolved_placement.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Maximum number of recompute steps for one tensor, including those of its sources.
inline constexpr int kLongestRecompute = 32;

/// Assigns a recipe to each tensor that a rule places at kRecompute. The tensor stays on the device
/// (PlacementReason::kUnfitToRecompute) if there is no recipe, if the recipe takes a tensor that a lossy
/// transform encodes, or if it needs more than kLongestRecompute recipes. A recipe takes only tensors that
/// were saved earlier, so there are no cycles.
///
/// `placements`: by saved tensor; `is_lossy`: by ResolvedPlacement::transform. The program must have recipes,
/// and they must outlive the placements. Returns the number of tensors that got a recipe.
std::size_t settle_recomputations(const StepProgram& program, const std::vector<char>& is_lossy,
                                  std::vector<RuledPlacement>& placements);

}  // namespace offprof
