#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/transform_cost.h"

namespace offprof {

/// What a policy's rules come to over the saved tensors of a step.
struct Placements {
  std::vector<RuledPlacement> by_tensor;  ///< empty where the policy has no rules
  std::vector<std::string> transforms;    ///< that the rules name, each once
  std::vector<std::string> warnings;      ///< rules that match nothing, a sentence each
};

/// The rules of a policy over the saved tensors of a recorded step: both a run and its simulation go by it.
///
/// A tensor is packed only where it fills its storage densely, and where all saved tensors of the same
/// content agree on the transform and have one dtype, since they share the copy. Else the rule's place stands
/// alone (PlacementReason::kUnfitToPack). What is to be made again must have a recipe: see settle_recipes.
///
/// `program` and `profiles` must outlive the result. Throws Error (input): a transform that `profiles` do not
/// have, or one that does not take the dtype of a tensor that its rule matches; kRecompute where nobody
/// looked for recipes.
Placements choose_placements(const Policy& policy, const Program& program,
                             std::span<const TransformProfile> profiles);

/// What packed the tensor, of which the scheduler decided so; empty: nothing.
std::string transform_of(const Placements& placements, SavedId tensor, const PackDecision& decision);

/// Whether a rule of it has tensors made again.
bool recomputes(const Policy& policy);

/// The transforms that the rules name, each once, in their order.
std::vector<std::string> transforms_in(const std::vector<PolicyRule>& rules);

}  // namespace offprof
