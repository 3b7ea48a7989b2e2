#include "profiler/offloading/placement_chooser.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/autograd/held_tensor.h"
#include "engine/scheduler/placement_rules.h"
#include "engine/torch/dtype_name.h"
#include "engine/transforms/transform_table.h"

namespace offprof {
namespace {

at::ScalarType type_named(const std::string& name) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i)
    if (dtype_name(static_cast<at::ScalarType>(i)) == name) return static_cast<at::ScalarType>(i);
  return at::ScalarType::Undefined;
}

/// Returns the encoded sizes of the noted tensors' storages, as choose_placements needs them. A size is 0 if
/// the transform does not take the tensor.
TransformProfile profile_of(const Transform& transform, const StepProgram& program) {
  TransformProfile profile{transform.name(), transform.is_lossless(), {}};
  for (const SavedTensor& saved : program.saved) {
    const std::int64_t elements = elements_of(*saved.layout);
    if (saved.movability != Movability::kMovable || elements == 0) continue;
    const Bytes width = saved.bytes / elements;  // 0: an element is smaller than a byte
    const at::ScalarType type = type_named(saved.layout->dtype);
    TransformCost cost;
    cost.dtype = saved.layout->dtype;
    if (width > 0) cost.elements = program.storages[saved.storage].bytes / width;
    if (width > 0 && transform.takes(type)) cost.encoded_bytes = transform.encoded_bytes(type, cost.elements);
    profile.costs.push_back(std::move(cost));
  }
  return profile;
}

/// Returns the placements of the noted tensors.
std::vector<RuledPlacement> resolve(const Policy& policy,
                                    const std::vector<std::shared_ptr<const Transform>>& transforms,
                                    const StepProgram& program) {
  std::vector<TransformProfile> profiles;
  for (const auto& transform : transforms) profiles.push_back(profile_of(*transform, program));
  std::vector<RuledPlacement> placements = choose_placements(policy, program, profiles).by_tensor;
  for (RuledPlacement& placement : placements) {
    if (!placement || placement->transform < 0) continue;
    placement->cost = nullptr;  // a run does not need it, and `profiles` end here
    if (placement->encoded_bytes > 0) continue;
    placement->transform = -1;
    placement->reason = PlacementReason::kUnfitToEncode;
  }
  return placements;
}

}  // namespace

NotedPlacements::NotedPlacements(Policy its_policy, std::optional<Policy> its_fallback,
                                 std::shared_ptr<const SavedNotes> its_notes)
    : policy(std::move(its_policy)), fallback(std::move(its_fallback)), notes(std::move(its_notes)) {
  for (const std::string& name : transforms_in(policy.rules)) transforms.push_back(make_transform(name));
  if (notes) by_tensor = resolve(policy, transforms, notes->program);
}

RuledPlacement PlacementChooser::choose(SavedId tensor, const at::Tensor& value, const PackRequest& request) {
  RuledPlacement placement = if_recomputable(by_policy(tensor, value, request), tensor, value, request);
  if (guard_) guard_->add(value, request);
  return placement;
}

/// Replaces a placement that recomputes a tensor which this step cannot recompute. As in a recorded step, a
/// plan decides about it, if there is one; else the tensor stays.
RuledPlacement PlacementChooser::if_recomputable(const RuledPlacement& placement, SavedId tensor,
                                                 const at::Tensor& value, const PackRequest& request) const {
  if (!placement || placement->place != Place::kRecompute) return placement;
  const bool is_known = placement->recomputation != nullptr && guard_;
  if (is_known && guard_->allows(*placement->recomputation, tensor, value, request)) return placement;
  if (noted_->policy.tensors && !has_left_plan_) return std::nullopt;
  return ResolvedPlacement{Place::kDevice, PlacementReason::kUnfitToRecompute};
}

RuledPlacement PlacementChooser::by_policy(SavedId tensor, const at::Tensor& value,
                                           const PackRequest& request) {
  if (noted_->policy.tensors && !has_left_plan_) has_left_plan_ = !is_noted(tensor, value);
  const bool is_movable =
      noted_->policy.scheduler == SchedulerKind::kTrl || request.movability == Movability::kMovable;
  if (!is_movable) return std::nullopt;
  if (has_left_plan_) return without_plan(tensor, value, request);
  return has_noted_placement(tensor, value, request) ? noted_->by_tensor[static_cast<std::size_t>(tensor)]
                                                     : by_rules(noted_->policy, tensor, value, request);
}

bool PlacementChooser::is_noted(SavedId tensor, const at::Tensor& value) const {
  if (!noted_->notes || static_cast<std::size_t>(tensor) >= noted_->notes->program.saved.size()) return false;
  const TensorLayout& layout = *noted_->notes->program.saved[static_cast<std::size_t>(tensor)].layout;
  return layout.dtype == dtype_name(value.scalar_type()) && value.sizes() == layout.sizes;
}

bool PlacementChooser::has_noted_placement(SavedId tensor, const at::Tensor& value,
                                           const PackRequest& request) const {
  if (noted_->by_tensor.empty() || !is_noted(tensor, value)) return false;
  const std::int32_t storage = noted_->notes->program.saved[static_cast<std::size_t>(tensor)].storage;
  return storage >= 0 && noted_->notes->program.storages[storage].bytes == request.storage_bytes;
}

/// Returns the placement in a step that is not like the noted one.
RuledPlacement PlacementChooser::without_plan(SavedId tensor, const at::Tensor& value,
                                              const PackRequest& request) const {
  const Policy& policy = noted_->fallback ? *noted_->fallback : noted_->policy;
  if (const RuledPlacement placement = by_rules(policy, tensor, value, request)) return placement;
  const bool is_large = policy.threshold_bytes && request.storage_bytes >= *policy.threshold_bytes;
  if (!is_large) return ResolvedPlacement{Place::kDevice, PlacementReason::kBelowThreshold};
  return ResolvedPlacement{Place::kHost, PlacementReason::kOffloaded};
}

RuledPlacement PlacementChooser::by_rules(const Policy& policy, SavedId tensor, const at::Tensor& value,
                                          const PackRequest& request) const {
  if (policy.rules.empty()) return std::nullopt;
  RuleSubject subject{.dtype = dtype_name(value.scalar_type()),
                      .rank = value.dim(),
                      .storage_bytes = request.storage_bytes,
                      .position = tensor};
  const auto index = static_cast<std::size_t>(tensor);
  // Steps on other sizes save the same tensors otherwise, in the same order.
  if (noted_->notes && noted_->notes->has_origins && index < noted_->notes->program.saved.size()) {
    const SavedTensor& saved = noted_->notes->program.saved[index];
    if (saved.layout->dtype == subject.dtype &&
        static_cast<std::int64_t>(saved.layout->sizes.size()) == subject.rank) {
      subject.op = noted_->notes->program.names[saved.op];
      subject.module = noted_->notes->program.names[saved.module];
    }
  }
  const auto rule =
      std::ranges::find_if(policy.rules, [&](const PolicyRule& each) { return matches(each, subject); });
  if (rule == policy.rules.end()) return std::nullopt;
  return placed_by(*rule, value, request);
}

/// Encodes only tensors that fill their storage: other tensors of the storage are not known yet.
ResolvedPlacement PlacementChooser::placed_by(const PolicyRule& rule, const at::Tensor& value,
                                              const PackRequest& request) const {
  ResolvedPlacement placement{rule.placement.place, PlacementReason::kRule};
  if (rule.placement.transform.empty()) return placement;
  const auto found = std::ranges::find(noted_->transforms, rule.placement.transform, &Transform::name);
  const bool is_fit = found != noted_->transforms.end() && request.tensor_bytes == request.storage_bytes &&
                      value.numel() > 0 && is_dense(value) && (*found)->takes(value.scalar_type());
  if (!is_fit) {
    placement.reason = PlacementReason::kUnfitToEncode;
    return placement;
  }
  placement.transform = static_cast<std::int32_t>(found - noted_->transforms.begin());
  placement.encoded_bytes = (*found)->encoded_bytes(value.scalar_type(), value.numel());
  return placement;
}

}  // namespace offprof
