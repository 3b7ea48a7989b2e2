#pragma once

#include <span>

#include "profiler/recording/step_result.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Returns the timeline of the recorded steps for a trace file: operators, waits, copies, arrows and
/// counters, and the activity of the GPU if it was traced.
Timeline build_timeline(std::span<const StepResult> steps);

}  // namespace offprof
