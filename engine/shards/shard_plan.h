#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// What the pieces of a model's forward take, which run one after another.
struct PieceCosts {
  struct Weight {
    std::int64_t id = 0;  ///< the same one may serve several pieces
    Bytes bytes = 0;
  };
  struct Piece {
    Bytes saved_bytes = 0;  ///< what autograd would save of it
    std::vector<Weight> weights{};
    /// What it and those after it take of those before it.
    Bytes boundary_bytes = 0;
    bool can_begin_a_shard = true;
  };
  std::vector<Piece> pieces;
};

/// Shards: runs of consecutive pieces.
struct ShardPlan {
  std::vector<std::size_t> first_pieces;  ///< by shard, from 0 upwards
  /// Of the largest: its weights, once each, what autograd saves of it, and what comes into it.
  Bytes largest_bytes = 0;
  Bytes boundary_bytes = 0;  ///< of all shards, what comes into them
  bool operator==(const ShardPlan&) const = default;
};

/// As many shards as can begin somewhere: the most that there can be.
std::size_t most_shards(const PieceCosts& costs);

/// The plan of so many shards whose largest is smallest; of several such, the one with the least at the
/// boundaries. `count` nullopt: the number for which the largest and all boundaries together are least, which
/// is what a step holds where boundaries stay on the device; of several, the least. `count` must not be more
/// than most_shards.
ShardPlan plan_shards(const PieceCosts& costs, std::optional<std::size_t> count);

}  // namespace offprof
