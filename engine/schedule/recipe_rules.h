#pragma once

#include <cstddef>
#include <vector>

#include "engine/schedule/tensor_placement.h"
#include "traces/program.h"

namespace offprof {

/// The most recipes that are followed to make one tensor again, those for what it is made of included.
inline constexpr int kLongestRemake = 32;

/// Gives the tensors that rules place at kRecompute their recipes. Where there is none, where it takes what a
/// lossy transform packs, or where it takes more than kLongestRemake recipes, the tensor stays on the
/// device (PlacementReason::kUnfitToRecompute). A recipe takes only tensors that were saved before: there are
/// no cycles.
///
/// `placements`: by saved tensor; `is_lossy`: by TensorPlacement::transform. The program's recipes must be
/// there, and outlive the placements. Returns how many tensors have been given one.
std::size_t settle_recipes(const Program& program, const std::vector<char>& is_lossy,
                           std::vector<RuledPlacement>& placements);

}  // namespace offprof
