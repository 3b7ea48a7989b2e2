#pragma once

#include <cstdint>
#include <optional>

#include "traces/ledger.h"
#include "traces/placement.h"
#include "traces/recipe.h"
#include "traces/transform_cost.h"

namespace offprof {

/// What a policy's rules make of one saved tensor.
struct TensorPlacement {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kRule;
  /// Of the transforms that the rules name, the one that packs it; -1: none.
  std::int32_t transform = -1;
  Bytes packed_bytes = 0;               ///< of what it is packed into; 0: nothing packs it
  const TransformCost* cost = nullptr;  ///< of packing it, where it is known: a run needs none
  const Recipe* recipe = nullptr;       ///< by which it is made again, where its place is kRecompute

  bool operator==(const TensorPlacement&) const = default;
};

/// nullopt: no rule matches, so the threshold and the plan decide.
using RuledPlacement = std::optional<TensorPlacement>;

}  // namespace offprof
