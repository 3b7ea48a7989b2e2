#pragma once

#include <string>
#include <vector>

#include "cli/terminal/chart.h"
#include "cli/terminal/terminal.h"
#include "simulator/steps/trace_steps.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// Device memory during the step of a trace.
struct MemoryOverStep {
  std::vector<ChartSample> device_bytes;  ///< by time on the compute stream, in nanoseconds
  std::vector<ChartMark> phases;          ///< `forward`, `backward`, `optimizer`
  Nanoseconds end_ns = 0;
  Bytes peak_bytes = 0;
  Bytes keep_peak_bytes = 0;  ///< peak with nothing offloaded
};

/// Replays the step of a trace under `policy`, and once more with nothing offloaded. The link's bandwidth
/// must be above 0.
MemoryOverStep replay_memory(const TraceSteps& steps, const Policy& policy, const Link& link);

std::string draw_memory(const MemoryOverStep& memory, const Page& page);

}  // namespace offprof
