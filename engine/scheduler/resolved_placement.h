#pragma once

#include <cstdint>
#include <optional>

#include "traces/model/ledger.h"
#include "traces/model/placement.h"
#include "traces/model/recomputation.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Placement of one saved tensor, as the policy's rules decide it.
struct ResolvedPlacement {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kRule;
  /// Index of the transform that encodes the tensor, among the transforms that the rules name; -1: none.
  std::int32_t transform = -1;
  Bytes encoded_bytes = 0;              ///< size of the encoded tensor; 0: no transform encodes it
  const TransformCost* cost = nullptr;  ///< cost of the transform, if it is known: a run does not need it
  const Recomputation* recomputation = nullptr;  ///< recomputes the tensor, if its place is kRecompute

  bool operator==(const ResolvedPlacement&) const = default;
};

/// Placement that the rules give a tensor. nullopt: no rule matches, so the threshold and the plan decide.
using RuledPlacement = std::optional<ResolvedPlacement>;

}  // namespace offprof
