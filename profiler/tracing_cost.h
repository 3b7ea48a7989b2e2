#pragma once

#include <functional>

#include "traces/tracing.h"

namespace offprof {

/// Each makes a step and says how long it took. None is empty.
struct StepsToTrace {
  std::function<Nanoseconds()> untraced;
  std::function<Nanoseconds()> streams;     ///< the tracer records kernels, copies and sets
  std::function<Nanoseconds()> tracer;      ///< the tracer records all that it can
  std::function<Nanoseconds()> recorder;    ///< the recorder alone
  std::function<Nanoseconds()> everything;  ///< both, as for a trace
};

/// What tracing makes of a step: rounds of one step of each kind, after one that does not count, in which the
/// tracer gets ready for the kernels that it has not seen.
TracingCost measure_tracing_cost(const StepsToTrace& steps);

}  // namespace offprof
