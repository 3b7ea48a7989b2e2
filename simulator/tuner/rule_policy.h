#pragma once

#include <cstddef>
#include <optional>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {

/// Result of the search for a policy by rules that takes the place of a plan.
struct RulePolicySearch {
  Candidate best;
  std::size_t replayed = 0;  ///< policies that were replayed
};

/// Returns the policy by rules that is best for the goal among those near the plan of `plan`. Rules name
/// operators, modules and sizes, so they hold for other programs too, which a plan does not.
///
/// Tensors of one operator, module and storage size have one placement. Groups of which the plan offloads all
/// or nothing have that placement; for the others a cut-off of the offloaded share decides, and several are
/// tried. Rules are as general as the placements allow: a rule names an operator and modules of all layers
/// (`layers.*.mlp`), or else a module, or else a module and a size. `by_threshold`, if it is set, is the best
/// policy without a plan, and competes. `plan` must have a plan.
RulePolicySearch search_rule_policies(const TuneInputs& inputs, const GoalOrder& order, const Candidate& plan,
                                      const std::optional<Candidate>& by_threshold);

}  // namespace offprof
