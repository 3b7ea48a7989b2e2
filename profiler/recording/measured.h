#pragma once

#include <span>

#include "profiler/recording/step_result.h"
#include "traces/model/metrics.h"

namespace offprof {

/// Returns the figures of measured steps: the highest memory, and the times of the step with the median step
/// time, which therefore add up. Each time has its spread over all steps (`*_min`, `*_max`). `untimed` are
/// further steps whose memory counts but whose times do not.
Metrics summarize(std::span<const StepResult> steps, std::span<const StepResult> untimed = {});

}  // namespace offprof
