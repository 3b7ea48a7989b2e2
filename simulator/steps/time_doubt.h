#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/steps/modelled_time.h"
#include "simulator/steps/trace_steps.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Uncertainty of a policy's predicted step time, given the quartiles of each calibrated figure.
struct TimeDoubt {
  /// The range between the quartiles of the figures. Their effects on the step are independent, so they are
  /// added as squares. If times are modelled, the range_of its modelled_time. nullopt: nothing is known.
  std::optional<TimeRange> step;
  /// True if predicted times mean little: the range is wider than a quarter of the step.
  bool means_little = false;
  /// A sentence for each cause of the width: a figure with a large spread, or an unknown figure.
  std::vector<std::string> warnings;
};

/// If times are modelled, returns the range of the model, without warnings. Otherwise predicts the step under
/// `policy` over `link` once with each figure at either quartile, the others at their medians. The figures
/// are those of `trace`'s calibration that a replay uses, the step's own time, and the operators' times.
/// Figures of copies count only in the directions in which the link is the calibrated one. `steps` must be
/// made from `trace`. For many policies at once, the preset `offload` can stand for all: it copies most.
TimeDoubt doubt_times(const Trace& trace, const TraceSteps& steps, const Policy& policy, const Link& link);

}  // namespace offprof
