#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/steps/trace_steps.h"
#include "traces/base/time_range.h"
#include "traces/base/units.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Change of a step time if real times of one source are at either end of their range over the modelled ones.
struct TimeMove {
  std::string source;  ///< a family of operators, `host` or `copies`
  Nanoseconds at_low_ns = 0, at_high_ns = 0;
};

/// Step time on a virtual GPU, and what its sources of error do to it.
struct ModelledTime {
  Nanoseconds step_ns = 0;
  std::vector<TimeMove> moves;
};

/// Replays the step under `policy` with each source of error at either end of its range: the kernels of each
/// family of operators, all of them at once; the host; the copies, if `link` is the trace's and was not
/// given. A family's change is spread over all kernels of the step. `steps` must be made from `trace`.
/// nullopt: times are not modelled, or the trace does not say which families its kernels are of.
std::optional<ModelledTime> modelled_time(const Trace& trace, const TraceSteps& steps, const Policy& policy,
                                          const Link& link);

/// Returns the range that nine of ten real steps lie in: sources are independent of each other, so their
/// changes are added as squares.
TimeRange range_of(const ModelledTime& time);

/// Returns the range of `b.step_ns - a.step_ns`. Each source is off by the same factor in both, so most of
/// the error cancels. The two may be of different traces of one model.
TimeRange difference_range(const ModelledTime& a, const ModelledTime& b);

/// Returns true if the range of the difference does not say which of the two takes longer.
bool are_alike(const ModelledTime& a, const ModelledTime& b);

}  // namespace offprof
