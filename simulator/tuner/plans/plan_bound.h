#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/settings/movable_version.h"
#include "traces/model/link.h"

namespace offprof {

/// Lower bound for all policies of the offload scheduler, whichever tensors they move or recompute, with any
/// stash, any window and one or two copy streams. It comes from a linear relaxation; docs/internals/tuner.md
/// has the proof.
struct PlanBound {
  double value = 0;           ///< nanoseconds, or bytes
  std::vector<double> moved;  ///< by version: the share of it that the relaxation moves
  std::size_t rows = 0;       ///< number of rows of the relaxation
};

class PlanRelaxation {
 public:
  /// All arguments but the last two must outlive the object. `host_memory` is the cap on policies' host
  /// memory. `recompute_times`: by version, the time that its recomputation takes on the compute stream;
  /// nullopt: it cannot be recomputed. Empty: no policy recomputes anything.
  PlanRelaxation(const Step& step, const Link& link, const std::vector<MovableVersion>& versions,
                 const LeastMemory& least, std::optional<Bytes> host_memory,
                 std::vector<std::optional<Nanoseconds>> recompute_times = {});

  /// Returns a bound on the step time with a peak of at most `peak`. `known` is the step time of some policy
  /// that keeps to that peak, or a time that is certainly too long; the bound does not exceed it.
  PlanBound least_time(Bytes peak, Nanoseconds known) const;

  /// Returns a bound on the peak with a step time of at most `time`. `known` is, in the same way, the peak of
  /// some policy.
  PlanBound least_peak(Nanoseconds time, Bytes known) const;

 private:
  friend class PlanLinearProgram;

  void mark_points();
  void note_times();
  bool can_recompute(std::size_t version) const {
    return !recompute_times_.empty() && recompute_times_[version].has_value();
  }
  std::size_t point_at_or_before(std::size_t instant) const;
  std::size_t point_at_or_after(std::size_t instant) const;

  const Step& step_;
  Link link_;
  const std::vector<MovableVersion>& versions_;
  const LeastMemory& least_;
  std::optional<Bytes> host_memory_;
  std::vector<std::optional<Nanoseconds>> recompute_times_;
  /// Instants are in program order, two per event: before it, with its compute done, and after it; the last
  /// is the end of the step.
  std::vector<Nanoseconds> keep_time_;  ///< by event: see keep_times
  Nanoseconds host_path_ = 0;           ///< the result of host_path
  std::vector<std::size_t> points_;     ///< instants for which the relaxation has a time column
  std::vector<Nanoseconds> earliest_;   ///< by point: when the compute stream reaches it if nothing moves
  /// By point: the least time that the compute stream takes from the previous point to this one.
  std::vector<Nanoseconds> least_span_;
  std::size_t first_unpack_ = 0;  ///< the last point that is not after the first unpack
};

}  // namespace offprof
