#pragma once

#include <functional>

#include "traces/model/tracing.h"

namespace offprof {

/// Functions that run a step each and return its duration. None is empty.
struct StepsToTrace {
  std::function<Nanoseconds()> untraced;
  std::function<Nanoseconds()> streams;     ///< the tracer records kernels, copies and memsets
  std::function<Nanoseconds()> tracer;      ///< the tracer records everything it can
  std::function<Nanoseconds()> recorder;    ///< the recorder alone
  std::function<Nanoseconds()> everything;  ///< both, as for a trace
};

/// Measures the cost of tracing a step: rounds of one step of each kind, after one round that does not count,
/// in which the tracer prepares for new kernels. There are three rounds, and up to seven if steps are short.
TracingCost measure_tracing_cost(const StepsToTrace& steps);

}  // namespace offprof
