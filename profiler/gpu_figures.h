#pragma once

#include <optional>

#include "profiler/cupti/activity.h"
#include "profiler/intervals.h"
#include "profiler/step_result.h"
#include "traces/tracing.h"

namespace offprof {

/// What the GPU did in `step`, on the clock of `activity`. Work that began before the step or ends after it
/// counts as far as it lies within; a copy's bytes count with the step that it began in. Copies between two
/// places on the host are no work of the GPU; of one whose ends CUPTI does not name it is taken that they lie
/// on the device.
GpuFigures figures_of(const GpuActivity& activity, const Interval& step);

/// The same of a step that was recorded while the GPU was traced; nullopt: it was not, or nothing tells when
/// by the tracer's clock the step began.
std::optional<GpuFigures> gpu_figures_of(const StepResult& step);

}  // namespace offprof
