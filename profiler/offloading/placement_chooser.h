#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/transforms/transform.h"
#include "profiler/offloading/recompute_guard.h"
#include "profiler/offloading/saved_notes.h"
#include "traces/model/policy.h"

namespace offprof {

/// A policy's rules and plan, applied to the tensors of a noted step. Steps share it.
struct NotedPlacements {
  /// See the members.
  NotedPlacements(Policy its_policy, std::optional<Policy> its_fallback,
                  std::shared_ptr<const SavedNotes> its_notes);

  Policy policy;
  /// Decides instead of the policy's plan from the first tensor of a step on that is not the noted one;
  /// nullopt: the policy's rules and threshold do.
  std::optional<Policy> fallback;
  /// The step whose tensors the plan numbers, and which says the operators and modules that rules name;
  /// nullptr: none is known.
  std::shared_ptr<const SavedNotes> notes;
  std::vector<std::shared_ptr<const Transform>> transforms;  ///< by ResolvedPlacement::transform
  /// By noted tensor, as choose_placements decides for simulations too; empty without notes or rules.
  std::vector<RuledPlacement> by_tensor;
};

/// Chooses the placements of one step by a policy's rules and plan, tensor by tensor. The step need not be
/// like the one that was noted.
class PlacementChooser {
 public:
  /// `guard` says which tensors the step can recompute; nullptr: none.
  explicit PlacementChooser(std::shared_ptr<const NotedPlacements> noted,
                            std::shared_ptr<RecomputeGuard> guard = nullptr)
      : noted_(std::move(noted)), guard_(std::move(guard)) {}

  /// Returns the placement of the next saved tensor; nullopt: the threshold and the plan decide.
  RuledPlacement choose(SavedId tensor, const at::Tensor& value, const PackRequest& request);

  /// Returns true if the policy has a plan, and the step saved another tensor than the plan was made for.
  bool has_left_plan() const { return has_left_plan_; }

 private:
  RuledPlacement by_policy(SavedId tensor, const at::Tensor& value, const PackRequest& request);
  RuledPlacement if_recomputable(const RuledPlacement& placement, SavedId tensor, const at::Tensor& value,
                                 const PackRequest& request) const;
  bool is_noted(SavedId tensor, const at::Tensor& value) const;
  bool has_noted_placement(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;
  RuledPlacement without_plan(SavedId tensor, const at::Tensor& value, const PackRequest& request) const;
  RuledPlacement by_rules(const Policy& policy, SavedId tensor, const at::Tensor& value,
                          const PackRequest& request) const;
  ResolvedPlacement placed_by(const PolicyRule& rule, const at::Tensor& value,
                              const PackRequest& request) const;

  std::shared_ptr<const NotedPlacements> noted_;
  std::shared_ptr<RecomputeGuard> guard_;
  bool has_left_plan_ = false;
};

}  // namespace offprof
