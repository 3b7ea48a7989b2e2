#pragma once

#include <cstddef>
#include <vector>

#include "engine/scheduler/resolved_placement.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Maximum number of recompute steps for one tensor, including those of its sources.
inline constexpr int kLongestRecompute = 32;

/// Assigns a recomputation to each tensor that a rule places at kRecompute. The tensor stays on the device
/// (PlacementReason::kUnfitToRecompute) if there is no recomputation, if the recomputation reads a tensor
/// that a lossy transform encodes, or if it needs more than kLongestRecompute recomputations. A recomputation
/// reads only tensors that were saved earlier, so there are no cycles.
///
/// `placements`: by saved tensor; `is_lossy`: by ResolvedPlacement::transform. The program must have
/// recomputations, and they must outlive the placements. Returns the number of tensors that got a
/// recomputation.
std::size_t settle_recomputations(const StepProgram& program, const std::vector<char>& is_lossy,
                                  std::vector<RuledPlacement>& placements);

}  // namespace offprof
