#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/trace_steps.h"
#include "traces/link.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

/// A step time between two quartiles of what it is predicted from.
struct TimeRange {
  Nanoseconds low_ns = 0, high_ns = 0;
  bool operator==(const TimeRange&) const = default;
};

/// How far the step time that is predicted of a policy depends on where within its quartiles each calibrated
/// figure lies.
struct TimeDoubt {
  /// nullopt: nothing was calibrated, or times are modelled. Figures move the step independently of each
  /// other, so what they move it by is added as squares.
  std::optional<TimeRange> step;
  /// Predicted times mean little: the range is wider than a quarter of the step.
  bool means_little = false;
  /// A sentence each: the figures that make the range so wide, with how far they spread; or what is not
  /// known.
  std::vector<std::string> warnings;
};

/// Predicts the step under `policy` over `link` with each figure at its quartiles, the others at their
/// medians: the figures of `trace`'s calibration that a replay takes, the step's own, and the operators'
/// times. Those of copies count only in the directions in which the link is the calibrated one. `steps` are
/// the trace's. For many policies at once the preset `offload` stands for all: it copies most.
TimeDoubt doubt_times(const Trace& trace, const TraceSteps& steps, const Policy& policy, const Link& link);

}  // namespace offprof
