#pragma once

#include <vector>

#include "engine/devices/device.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"

namespace offprof {

/// Runs all of `offprof run` on a device: loads, warms up, records the keep and the offload-all pass, checks
/// the gradients, trains the measured steps under the policy, and builds the trace. `tracing` is for the
/// device's GPU and the trace's timeline; nullptr: none.
RunResult run_job(const RunRequest& request, Device& device, const Progress& progress,
                  StepTracing* tracing = nullptr);

/// Runs all of EnginePlugin::compare on a device.
ComparisonResult comparison_job(const RunRequest& request, const Comparison& comparison, Device& device,
                                const Progress& progress);

}  // namespace offprof
