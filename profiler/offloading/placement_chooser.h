#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "engine/scheduler/scheduler.h"
#include "profiler/offloading/saved_notes.h"
#include "traces/model/policy.h"

namespace offprof {

/// Chooses the placements of one step by a policy's rules and plan, tensor by tensor, for a step that need
/// not be like the one that was noted.
class PlacementChooser {
 public:
  /// `notes`: the step whose tensors the policy's plan numbers, and which says the operators and modules that
  /// rules name; nullptr: none is known.
  PlacementChooser(Policy policy, std::shared_ptr<const SavedNotes> notes);

  /// Returns the placement of the next saved tensor; nullopt: the threshold and the plan decide. From the
  /// first tensor that is not the noted one, the threshold alone decides instead of the plan.
  RuledPlacement choose(SavedId tensor, const at::Tensor& value, const PackRequest& request);

  /// Returns true if the policy has a plan, and the step saved another tensor than the plan was made for.
  bool has_left_plan() const { return has_left_plan_; }

 private:
  bool is_noted(SavedId tensor, const at::Tensor& value) const;
  RuledPlacement by_rules(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;

  Policy policy_;
  std::shared_ptr<const SavedNotes> notes_;
  bool has_left_plan_ = false;
};

}  // namespace offprof
