#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Time on both sides.
struct TimePair {
  Nanoseconds base = 0;
  Nanoseconds now = 0;
  Nanoseconds difference() const { return now - base; }
  bool operator==(const TimePair&) const = default;
};

struct CountPair {
  std::int64_t base = 0;
  std::int64_t now = 0;
  bool operator==(const CountPair&) const = default;
};

/// Phase of the step. An empty name stands for the time outside of all phases.
struct PhaseDifference {
  std::string name;
  TimePair time;
};

/// Operators of one name that are not nested in another operator, without their waits.
struct OpTimeDifference {
  std::string op;
  CountPair count;
  TimePair time;
};

/// Waits for copies of one saved tensor in one direction. A wait with several parts of different reasons
/// counts once; a wait of zero duration does not count.
struct WaitDifference {
  std::string name;          ///< `wait for copy out`, `wait for copy in`; others if that is not known
  std::int64_t tensor = -1;  ///< index in Program::saved; -1: none
  std::string base_reason;   ///< reasons of its parts, separated by `; `; empty: no wait on this side
  std::string now_reason;
  CountPair count;
  TimePair time;
};

/// Waits of the compute stream for a launch by the host, per phase. Only simulations have them, and not per
/// operator: see Program::work.
struct LaunchDifference {
  std::string phase;
  CountPair count;
  TimePair time;
};

struct CopyDifference {
  Track track = Track::kD2h;
  CountPair count;
  CountPair bytes;
  TimePair busy;  ///< sum of the durations; copies of one direction follow one another
};

/// One occurrence of an operator in the step, with its waits.
struct PlaceDifference {
  std::string phase;
  std::string op;
  std::int64_t occurrence = 0;           ///< occurrence of the operator in the phase, from 1
  std::optional<Nanoseconds> base_at{};  ///< time since the start of the step; nullopt: missing on this side
  std::optional<Nanoseconds> now_at{};
  TimePair time;
  TimePair waits;  ///< waits within `time`
};

/// Time differences between two steps. Lists contain everything that differs, the largest difference first.
/// On both sides, and so for the differences,
///
///     step = the sum over phases = operators + waits + rest
///
/// Waits for a launch are not part of this sum: they lie within operators and rest.
struct TimelineDiff {
  TimePair step;
  TimePair operators;  ///< sum over operators that are not nested, without their waits
  TimePair waits;      ///< sum over waits for copies
  TimePair rest;       ///< time between operators
  std::vector<PhaseDifference> phases;
  std::vector<OpTimeDifference> ops;
  std::vector<WaitDifference> wait_differences;
  std::vector<LaunchDifference> launch_waits;  ///< by phase, if either side has any
  std::vector<CopyDifference> copies;          ///< to the host, to the device, if either side has any
  std::vector<PlaceDifference> places;
};

/// Compares the last step of each side. A recorded trace has two steps, of which the later one is warmer; a
/// simulated trace has one. Operators are matched by phase, name and occurrence in program order, waits and
/// copies by direction and saved tensor. An operation that one side lacks takes no time there. Returns
/// nullopt if a side has no step.
std::optional<TimelineDiff> compare(const Timeline& base, const Timeline& now);

bool shows_a_step(const Timeline& timeline);

}  // namespace offprof
