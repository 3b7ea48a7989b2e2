#pragma once

#include <cstdint>
#include <vector>

#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/settings/movable_version.h"
#include "traces/base/units.h"

namespace offprof {

/// Sets of storage versions, one bit per version: the versions that a plan moves. For few versions.
class PlanSets {
 public:
  using Set = std::uint32_t;
  /// This many versions have 2^20 sets.
  static constexpr std::size_t kMostVersions = 20;

  /// `least` must be that of `versions`, of which there are at most kMostVersions.
  PlanSets(const LeastMemory& least, const std::vector<MovableVersion>& versions);

  /// Lower bound on the peak of every policy that moves at most these versions: the storages of the others
  /// are added, while they wait, to the memory that is used whichever tensors move.
  Bytes least_peak(Set moved) const;

  /// Returns all sets but the empty one, those most similar to `shares` first. `shares` has a value from 0 to
  /// 1 for each version.
  std::vector<Set> in_order_of_likeness(const std::vector<double>& shares) const;

 private:
  /// Events during which the same versions wait, with the maximum of LeastMemory::after_event over them.
  struct Stretch {
    Bytes highest = 0;
    Set waiting = 0;
  };

  std::vector<Bytes> bytes_;  ///< by version
  Bytes peak_;
  std::vector<Stretch> stretches_;
};

}  // namespace offprof
