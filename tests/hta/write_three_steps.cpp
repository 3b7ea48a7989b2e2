// Writes a trace of three steps for check_trace_with_hta.py: write_three_steps FILE

#include <cstdio>
#include <exception>
#include <string>

#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"

namespace {

using namespace offprof;

/// Not a whole number of microseconds, since viewers often make rounding errors.
constexpr Nanoseconds kStepPeriod = 12'345;

/// Returns a trace with the sample trace's step three times.
Trace three_steps() {
  Trace trace = sample_trace();
  const Timeline one_step = trace.timeline;
  for (int step = 1; step < 3; ++step) {
    for (Span span : one_step.spans) {
      span.begin_ns += step * kStepPeriod;
      if (span.kind == SpanKind::kStep) span.name = "ProfilerStep#" + std::to_string(step);
      trace.timeline.spans.push_back(span);
    }
    for (FlowPoint point : one_step.flows) {
      point.at_ns += step * kStepPeriod;
      point.flow += step;
      trace.timeline.flows.push_back(point);
    }
  }
  return trace;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    write_trace(argv[1], three_steps());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_three_steps: %s\n", error.what());
    return 1;
  }
  return 0;
}
