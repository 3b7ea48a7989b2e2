#pragma once

#include <optional>

#include "profiler/recording/activity.h"
#include "profiler/recording/intervals.h"
#include "profiler/recording/step_result.h"
#include "traces/model/tracing.h"

namespace offprof {

/// Returns the GPU's figures in `step`, which is on the clock of `activity`. Work that began before the step
/// or ends after it counts as far as it overlaps the step. A copy's bytes count in the step in which it
/// began. Copies between two places on the host are no work of the GPU. A copy end that CUPTI does not name
/// counts as lying on the device.
GpuFigures figures_of(const GpuActivity& activity, const Interval& step);

/// Returns the same for a step that was recorded while the GPU was traced; nullopt: it was not traced, or
/// nothing gives the step's beginning on the tracer's clock.
std::optional<GpuFigures> gpu_figures_of(const StepResult& step);

}  // namespace offprof
