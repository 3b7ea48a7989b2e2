#pragma once

#include "profiler/cupti/activity.h"
#include "profiler/intervals.h"
#include "traces/tracing.h"

namespace offprof {

/// What the GPU did in `step`, on the clock of `activity`. Work that began before the step or ends after it
/// counts as far as it lies within; a copy's bytes count with the step that it began in. Copies between two
/// places on the host are no work of the GPU; of one whose ends CUPTI does not name it is taken that they lie
/// on the device.
GpuFigures figures_of(const GpuActivity& activity, const Interval& step);

}  // namespace offprof
