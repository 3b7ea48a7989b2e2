#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/timeline.h"
#include "traces/units.h"

namespace offprof {

/// A time on both sides.
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

/// A phase of the step, or, without a name, what is outside of any.
struct PhaseDifference {
  std::string name;
  TimePair time;
};

/// All operators of a name that are in no other operator, their waits taken out.
struct OpTimeDifference {
  std::string op;
  CountPair count;
  TimePair time;
};

/// The waits for copies of one direction of one saved tensor. A wait whose parts have different reasons
/// counts once, one that takes no time does not.
struct WaitDifference {
  std::string name;          ///< `wait for copy out`, `wait for copy in`; others where that is not known
  std::int64_t tensor = -1;  ///< an index in Program::saved; -1: for none
  std::string base_reason;   ///< empty: it does not wait there; else its parts' reasons, with `; ` between
  std::string now_reason;
  CountPair count;
  TimePair time;
};

/// In a phase, what of the compute stream's time is waits for the host to launch. Only simulations tell, and
/// not to the operator: see Program::work.
struct LaunchDifference {
  std::string phase;
  CountPair count;
  TimePair time;
};

struct CopyDifference {
  Track track = Track::kD2h;
  CountPair count;
  CountPair bytes;
  TimePair busy;  ///< the sum of the copies' durations: those of a direction follow one another
};

/// One operator in one place of the step, with its waits.
struct PlaceDifference {
  std::string phase;
  std::string op;
  std::int64_t occurrence = 0;           ///< of that operator in that phase, from 1
  std::optional<Nanoseconds> base_at{};  ///< since the step began; nullopt: it is not there
  std::optional<Nanoseconds> now_at{};
  TimePair time;
  TimePair waits;  ///< what of it is waits
};

/// Where two steps part in time. Everything that differs is listed, the largest difference first, and
///
///     step = the sum over phases = operators + waits + rest
///
/// holds for both sides and so for the differences. Waits for launch are not in this sum: they lie within
/// what it has as operators and rest.
struct TimelineDiff {
  TimePair step;
  TimePair operators;  ///< the sum over operators that are in no other, their waits taken out
  TimePair waits;      ///< the sum over waits for copies
  TimePair rest;       ///< between operators
  std::vector<PhaseDifference> phases;
  std::vector<OpTimeDifference> ops;
  std::vector<WaitDifference> wait_differences;
  std::vector<LaunchDifference> launch_waits;  ///< by phase, where either side has any
  std::vector<CopyDifference> copies;          ///< to the host, to the device, where either side has any
  std::vector<PlaceDifference> places;
};

/// Compares the last step that each side shows: a recorded trace shows two, the later of which is the warmer,
/// a simulated one shows one. Operators are matched by phase, name and occurrence in program order, waits and
/// copies by direction and saved tensor; what one side lacks counts as no time there. nullopt where a side
/// shows no step.
std::optional<TimelineDiff> compare(const Timeline& base, const Timeline& now);

bool shows_a_step(const Timeline& timeline);

}  // namespace offprof
