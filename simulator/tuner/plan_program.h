#pragma once

#include <optional>
#include <vector>

#include "simulator/tuner/linear_program.h"
#include "simulator/tuner/plan_bound.h"

namespace offprof {

/// The linear program behind PlanRelaxation, for one question. Rows for memory, of which a step has as many
/// as it has events, are added where a solution breaks them.
class PlanProgram {
 public:
  /// Exactly one of the two is what is asked for; of the other the limit is given.
  struct Question {
    std::optional<Bytes> peak;        ///< given: at most that
    std::optional<Nanoseconds> time;  ///< given: at most that
    double known = 0;                 ///< what the answer is not above
  };

  PlanProgram(const PlanRelaxation& relaxation, const Question& question);
  PlanBound solve();

 private:
  /// A copy's work and where in program order it must be done.
  struct Copy {
    std::size_t version = 0;
    std::size_t release = 0, deadline = 0;  ///< indices of points
    double duration = 0;
  };
  /// An event after which memory is tight, seen from the copies out before it or the copies in after it.
  struct TightMoment {
    std::vector<std::size_t> waiting;  ///< versions, those farthest from it in time first
    std::size_t here = 0;              ///< its point
    double per_byte = 0;               ///< the least time that a copied byte takes
    double held = 0;                   ///< bytes on the device were nothing moved
    bool is_out = true;
  };
  struct Violation {
    double amount = 0;
    std::size_t place = 0;    ///< the point at the interval's other end
    std::size_t outside = 0;  ///< versions that need not be copied in it
  };

  void add_columns();
  void add_time_rows();
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

  double time_of(std::size_t instant) const;
  double bytes_of(std::size_t version) const;
  bool is_broken(double amount) const;

  const PlanRelaxation& of_;
  Question question_;
  LinearProgram program_;
  double time_unit_, byte_unit_;
  std::vector<std::size_t> moved_;         ///< by version: its column; kNoEvent: to move it changes nothing
  std::vector<std::size_t> at_;            ///< by point: the column of its time
  std::size_t peak_ = 0;                   ///< the column of the peak
  std::vector<char> has_memory_row_;       ///< by event
  std::vector<std::size_t> tight_events_;  ///< those that have one
};

}  // namespace offprof
