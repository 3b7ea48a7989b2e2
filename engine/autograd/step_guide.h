#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/recompute/recompute.h"
#include "engine/scheduler/resolved_placement.h"
#include "engine/scheduler/scheduler.h"
#include "engine/transforms/transform.h"

namespace offprof {

/// Inputs of a step besides its policy: mostly results of a recording.
struct StepGuide {
  StepGuide() = default;
  StepGuide(std::vector<SavedId> order)  // NOLINT(google-explicit-constructor): an order alone is a guide
      : backward_order(std::move(order)) {}

  /// Order of unpacks in backward: see make_scheduler.
  std::vector<SavedId> backward_order{};
  /// Placements by the policy's rules, per saved tensor: see choose_placements. Empty: there are no rules.
  std::vector<RuledPlacement> placements{};
  /// Returns the placement of a movable tensor that fills its storage densely, if nothing was recorded.
  /// Empty: `placements` is used.
  std::function<RuledPlacement(const at::Tensor& value)> place{};
  /// Returns the placement of each saved tensor as it is saved, instead of `placements` and `place`: for
  /// steps that need not be alike. Empty: the others are used.
  std::function<RuledPlacement(SavedId tensor, const at::Tensor& value, const PackRequest& request)> decide{};
  /// Recompute steps of the recomputations in placements, by Recomputation::tensor.
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>> recomputations{};
  /// Returns the generator state before a draw that recompute steps repeat. Empty: the step itself keeps the
  /// states.
  std::function<const RngState&(std::size_t draw)> state_before{};
  /// Called when forward ends. Empty: nobody is told.
  std::function<void()> on_forward_end{};
  /// Lets the scheduler move inputs that were made in the step, to see how long the program itself holds
  /// them.
  bool moves_inputs = false;
  /// Transforms, by ResolvedPlacement::transform.
  std::vector<std::shared_ptr<const Transform>> transforms{};
};

}  // namespace offprof
