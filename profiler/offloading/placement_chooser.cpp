#include "profiler/offloading/placement_chooser.h"

#include <algorithm>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/torch/dtype_name.h"

namespace offprof {

PlacementChooser::PlacementChooser(Policy policy, std::shared_ptr<const SavedNotes> notes)
    : policy_(std::move(policy)), notes_(std::move(notes)) {}

RuledPlacement PlacementChooser::choose(SavedId tensor, const at::Tensor& value, const PackRequest& request) {
  if (policy_.tensors && !has_left_plan_) has_left_plan_ = !is_noted(tensor, value);
  const bool is_movable =
      policy_.scheduler == SchedulerKind::kTrl || request.movability == Movability::kMovable;
  if (!is_movable) return std::nullopt;
  if (const RuledPlacement placement = by_rules(tensor, value, request)) return placement;
  const bool is_large = policy_.threshold_bytes && request.storage_bytes >= *policy_.threshold_bytes;
  if (!has_left_plan_ || !is_large) return std::nullopt;
  return ResolvedPlacement{Place::kHost, PlacementReason::kOffloaded};
}

bool PlacementChooser::is_noted(SavedId tensor, const at::Tensor& value) const {
  if (!notes_ || static_cast<std::size_t>(tensor) >= notes_->saved.size()) return false;
  const TensorLayout& layout = *notes_->saved[static_cast<std::size_t>(tensor)].layout;
  return layout.dtype == dtype_name(value.scalar_type()) && value.sizes() == layout.sizes;
}

RuledPlacement PlacementChooser::by_rules(SavedId tensor, const at::Tensor& value,
                                          const PackRequest& request) const {
  if (policy_.rules.empty()) return std::nullopt;
  RuleSubject subject{.dtype = dtype_name(value.scalar_type()),
                      .rank = value.dim(),
                      .storage_bytes = request.storage_bytes,
                      .position = tensor};
  const auto index = static_cast<std::size_t>(tensor);
  // Steps on other sizes save the same tensors otherwise, in the same order.
  if (notes_ && index < notes_->origins.size()) {
    const TensorLayout& layout = *notes_->saved[index].layout;
    if (layout.dtype == subject.dtype && static_cast<std::int64_t>(layout.sizes.size()) == subject.rank) {
      subject.op = notes_->origins[index].op;
      subject.module = notes_->origins[index].module;
    }
  }
  const auto rule =
      std::ranges::find_if(policy_.rules, [&](const PolicyRule& each) { return matches(each, subject); });
  if (rule == policy_.rules.end()) return std::nullopt;
  return ResolvedPlacement{rule->placement.place, PlacementReason::kRule};
}

}  // namespace offprof
