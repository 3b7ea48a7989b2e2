#pragma once

#include <cstdint>
#include <vector>

#include "simulator/tuner/least_memory.h"
#include "simulator/tuner/movable_version.h"
#include "traces/units.h"

namespace offprof {

/// The sets of few storage versions, one bit a version: what a plan can move.
class PlanSets {
 public:
  using Set = std::uint32_t;
  /// That is, as many versions have 2^20 sets.
  static constexpr std::size_t kMostVersions = 20;

  /// `least` is that of the versions, of which there are at most kMostVersions.
  PlanSets(const LeastMemory& least, const std::vector<MovableVersion>& versions);

  /// No policy that moves nothing but these has a lower peak: what the others hold while they wait comes on
  /// top of what is there whatever moves.
  Bytes least_peak(Set moved) const;

  /// All but the empty set, those first that have most of what `shares`, by version from 0 to 1, moves and
  /// least of what it does not.
  std::vector<Set> in_order_of_likeness(const std::vector<double>& shares) const;

 private:
  /// Events between which no version begins to wait or ends to: the highest of LeastMemory::after_event.
  struct Stretch {
    Bytes highest = 0;
    Set waiting = 0;
  };

  std::vector<Bytes> bytes_;  ///< by version
  Bytes peak_;
  std::vector<Stretch> stretches_;
};

}  // namespace offprof
