#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/step.h"
#include "simulator/tuner/least_memory.h"
#include "simulator/tuner/movable_version.h"
#include "traces/link.h"

namespace offprof {

/// What no policy of the offload scheduler can do better than, whichever tensors it moves, with any stash,
/// any window and one or two copy streams: a linear relaxation, whose proof is in docs/tuning.md.
struct PlanBound {
  double value = 0;           ///< nanoseconds, or bytes
  std::vector<double> moved;  ///< by version: the share of it that the relaxation moves
  std::size_t rows = 0;       ///< of the relaxation
};

class PlanRelaxation {
 public:
  /// All that is passed must outlive it. `host_memory`: cap of what policies may hold in host memory.
  PlanRelaxation(const Step& step, const Link& link, const std::vector<MovableVersion>& versions,
                 const LeastMemory& least, std::optional<Bytes> host_memory);

  /// The least step time with a peak of at most `peak`. `known`: the step time of a policy that is known to
  /// have such a peak, or one that is too long for anybody; the bound is not above it.
  PlanBound least_time(Bytes peak, Nanoseconds known) const;

  /// The least peak with a step time of at most `time`. `known`: likewise a peak.
  PlanBound least_peak(Nanoseconds time, Bytes known) const;

 private:
  friend class PlanProgram;

  void mark_points();
  void note_times();
  std::size_t point_at_or_before(std::size_t instant) const;
  std::size_t point_at_or_after(std::size_t instant) const;

  const Step& step_;
  Link link_;
  const std::vector<MovableVersion>& versions_;
  const LeastMemory& least_;
  std::optional<Bytes> host_memory_;
  /// Instants of program order, two an event: before it, its compute done, and after it; the last is the end.
  std::vector<Nanoseconds> keep_time_;   ///< by instant: when a step comes there that keeps all
  Nanoseconds host_path_ = 0;            ///< host_path
  std::vector<std::size_t> points_;      ///< the instants that the relaxation has a time for
  std::vector<Nanoseconds> least_span_;  ///< by point: the least time from the point before to it
};

}  // namespace offprof
