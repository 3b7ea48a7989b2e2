#pragma once

#include <span>

#include "profiler/step_result.h"
#include "traces/metrics.h"

namespace offprof {

/// The figures of measured steps: the highest memory; the times of the step that took the median time, which
/// add up as that step's do, each with its spread over all steps (`*_min`, `*_max`). `untimed`: more steps,
/// whose memory counts and whose times do not.
Metrics summarize(std::span<const StepResult> steps, std::span<const StepResult> untimed = {});

}  // namespace offprof
