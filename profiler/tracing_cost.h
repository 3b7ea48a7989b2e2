#pragma once

#include <functional>

#include "traces/tracing.h"

namespace offprof {

/// Each makes a step and says how long it took. None is empty.
struct StepsToTrace {
  std::function<Nanoseconds()> untraced;
  std::function<Nanoseconds()> streams;     ///< with kernels, copies and sets traced
  std::function<Nanoseconds()> everything;  ///< with all that a trace shows
};

/// What tracing makes of a step: rounds of one step of each kind, after one that does not count, in which the
/// tracer gets ready for the kernels that it has not seen.
TracingCost measure_tracing_cost(const StepsToTrace& steps);

}  // namespace offprof
