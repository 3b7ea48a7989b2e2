#pragma once

#include <string>

#include "traces/model/trace.h"

namespace offprof {

/// Appends the trace's timeline as the elements of a Chrome trace's `traceEvents`, one per line, in the
/// conventions of PyTorch's Kineto, which Perfetto and Holistic Trace Analysis read: compute in process 1,
/// copies as streams of device 0, times in microseconds with three decimals.
void append_trace_events(std::string& out, const Trace& trace);

}  // namespace offprof
