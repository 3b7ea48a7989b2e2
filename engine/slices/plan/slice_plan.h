#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Memory of the pieces of a model's forward, which run one after another.
struct PieceCosts {
  struct Weight {
    std::int64_t id = 0;  ///< the same parameter may serve several pieces
    Bytes bytes = 0;
  };
  struct Piece {
    Bytes saved_bytes = 0;  ///< bytes that autograd would save of it
    std::vector<Weight> parameters{};
    /// Bytes of earlier pieces' values that this piece and later ones read.
    Bytes boundary_bytes = 0;
    bool can_begin_a_slice = true;
  };
  std::vector<Piece> pieces;
};

/// Layer slices: runs of consecutive pieces.
struct SlicePlan {
  std::vector<std::size_t> first_pieces;  ///< by slice, ascending from 0
  /// Bytes of the largest slice: its parameters, once each, its saved tensors, and its inputs.
  Bytes largest_bytes = 0;
  Bytes boundary_bytes = 0;  ///< total bytes of the slices' inputs
  bool operator==(const SlicePlan&) const = default;
};

/// Returns the largest possible number of slices: the number of pieces that can begin one.
std::size_t most_slices(const PieceCosts& costs);

/// Returns the plan with `count` slices whose largest slice is smallest; of several, the one with the fewest
/// boundary bytes. If `count` is nullopt, chooses the count with the smallest sum of the largest slice and
/// all boundaries, which a step holds if boundaries stay on the device; of several, the smallest count.
/// `count` must not exceed most_slices.
SlicePlan plan_slices(const PieceCosts& costs, std::optional<std::size_t> count);

}  // namespace offprof
