#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/remake.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/tensor_placement.h"
#include "engine/transforms/transform.h"

namespace offprof {

/// What a step goes by beside its policy: mostly what a recording tells of it.
struct StepGuide {
  StepGuide() = default;
  StepGuide(std::vector<SavedId> order)  // NOLINT(google-explicit-constructor): an order alone is a guide
      : backward_order(std::move(order)) {}

  /// See make_scheduler.
  std::vector<SavedId> backward_order{};
  /// By saved tensor, what the policy's rules make of it: see choose_placements. Empty: there are no rules.
  std::vector<RuledPlacement> placements{};
  /// Where nothing is recorded: what is made of a tensor that may move and fills its storage densely. Empty:
  /// `placements` say.
  std::function<RuledPlacement(const at::Tensor& value)> place{};
  /// By Recipe::tensor, those that `placements` have.
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecipe>> recipes{};
  /// By TensorPlacement::transform.
  std::vector<std::shared_ptr<const Transform>> transforms{};
};

}  // namespace offprof
