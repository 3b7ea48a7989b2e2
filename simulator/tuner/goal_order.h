#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_goal.h"
#include "traces/base/units.h"

namespace offprof {

/// Returns the predicted step time of the candidate, which must have one.
Nanoseconds step_time_of(const Candidate& candidate);

/// Returns the device memory that the candidate takes (device_bytes_taken).
Bytes taken_by(const Candidate& candidate);

/// Order of candidates by a goal: which are within its limit, and which of two is better.
class GoalOrder {
 public:
  /// `goal` and `steps` must outlive it. `keep_time` is the step time without offloading.
  GoalOrder(const TuneGoal& goal, const TraceSteps& steps, Nanoseconds keep_time)
      : goal_(goal), steps_(steps), keep_time_(keep_time) {}

  const TuneGoal& goal() const { return goal_; }
  Nanoseconds keep_time() const { return keep_time_; }

  /// Returns the goal's limit, over device peak and step time.
  Aim aim() const;

  /// Returns true if the candidate runs within the budget or, without one, within the slowdown and the
  /// device's memory.
  bool is_within(const Candidate& candidate) const;

  /// Returns true if `a` is better than `b`, which is within the goal's limit.
  bool is_better(const Candidate& a, const Candidate& b) const;

  /// Returns a key that sorts candidates: those within the goal's limit come first, the best one first; then
  /// those beyond it, nearest first.
  std::tuple<bool, double, double> distance(const Candidate& candidate) const;

  /// Returns the best candidate of a Pareto frontier over device memory taken and step time, sorted by
  /// memory, least first. nullopt: none is within the limit.
  std::optional<Candidate> choose(const std::vector<Candidate>& frontier) const;

 private:
  Nanoseconds slowest() const;
  bool fits(const Candidate& candidate) const;

  const TuneGoal& goal_;
  const TraceSteps& steps_;
  Nanoseconds keep_time_;
};

}  // namespace offprof
