#pragma once

#include <span>

#include "profiler/step_result.h"
#include "traces/timeline.h"

namespace offprof {

/// What the recorded steps did and when, for a trace file: operators, waits, copies, arrows, counters; and
/// what their GPU did, where it was traced.
Timeline build_timeline(std::span<const StepResult> steps);

}  // namespace offprof
