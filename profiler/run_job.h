#pragma once

#include <vector>

#include "engine/device.h"
#include "engine/plugin.h"
#include "profiler/cupti/step_tracing.h"

namespace offprof {

/// The whole of `offprof run` on a device: loads, warms up, records the keep and the offload-all pass, checks
/// the gradients, trains the measured steps under the policy, and makes the trace of it. `tracing`: of the
/// device's GPU, for the trace's timeline; nullptr: none.
RunResult run_job(const RunRequest& request, Device& device, const Progress& progress,
                  StepTracing* tracing = nullptr);

/// The whole of EnginePlugin::compare on a device.
ComparisonResult comparison_job(const RunRequest& request, const Comparison& comparison, Device& device,
                                const Progress& progress);

}  // namespace offprof
