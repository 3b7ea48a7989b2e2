#pragma once

#include <optional>
#include <vector>

#include "simulator/tuner/plans/linear_program.h"
#include "simulator/tuner/plans/plan_bound.h"

namespace offprof {

/// Linear program of PlanRelaxation, for one question. A step has one memory row per event; a row is added
/// only when a solution violates it.
class PlanLinearProgram {
 public:
  /// Exactly one of `peak` and `time` is set: it is the limit. The other quantity is minimized.
  struct Question {
    std::optional<Bytes> peak;        ///< limit of the peak
    std::optional<Nanoseconds> time;  ///< limit of the step time
    double known = 0;                 ///< the answer does not exceed it
  };

  PlanLinearProgram(const PlanRelaxation& relaxation, const Question& question);
  PlanBound solve();

 private:
  /// Duration of a copy, and the interval of program order in which it must run.
  struct Copy {
    std::size_t version = 0;
    std::size_t release = 0, deadline = 0;  ///< indices of points
    double duration = 0;
  };
  /// An event after which memory is tight, seen from the copies out before it or the copies in after it.
  struct TightMoment {
    std::vector<std::size_t> waiting;  ///< versions, those farthest from it in time first
    std::size_t here = 0;              ///< its point
    double per_byte = 0;               ///< the least copy time per byte
    double held = 0;                   ///< bytes on the device if nothing were moved
    bool is_out = true;
  };
  struct Violation {
    double amount = 0;
    std::size_t place = 0;    ///< the point at the other end of the interval
    std::size_t outside = 0;  ///< number of versions that need not be copied in it
  };

  void add_columns();
  void add_time_rows();
  void add_choice_rows();
  std::vector<LinearProgram::Terms> recomputed_by_point() const;
  void add_launch_row();
  void add_host_row();
  std::vector<Copy> copies_out() const;
  std::vector<Copy> copies_in() const;
  void add_copies_out(const std::vector<Copy>& copies, std::size_t deadline);
  void add_copies_in(const std::vector<Copy>& copies, std::size_t release);

  std::size_t add_broken_memory_rows();
  std::vector<double> excess_after_events() const;
  void add_memory_row(std::size_t event);
  std::size_t add_broken_copy_rows();
  TightMoment tight_moment(std::size_t event, bool is_out) const;
  Violation worst_interval(const TightMoment& moment) const;
  bool add_copy_row(std::size_t event, bool is_out);
  bool is_outside(std::size_t version, std::size_t instant, bool is_out) const;
  std::vector<std::size_t> waiting_after(std::size_t event) const;

  double share_gone(std::size_t version) const;
  double bytes_of(std::size_t version) const;
  bool is_broken(double amount) const;

  const PlanRelaxation& of_;
  Question question_;
  LinearProgram program_;
  double time_unit_, byte_unit_;
  std::vector<std::size_t> moved_;         ///< by version: its column; kNoEvent: moving it has no effect
  std::vector<std::size_t> recomputed_;    ///< by version: its column; kNoEvent: it cannot be recomputed
  std::vector<std::size_t> at_;            ///< by point: the column of its time
  std::size_t peak_ = 0;                   ///< the column of the peak
  std::vector<char> has_memory_row_;       ///< by event
  std::vector<std::size_t> tight_events_;  ///< events with a memory row
};

}  // namespace offprof
