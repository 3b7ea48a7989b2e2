#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/devices/device.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/recording/step_result.h"
#include "profiler/stages/policy_steps.h"
#include "profiler/steps/step_script.h"
#include "traces/model/metrics.h"
#include "traces/model/tracing.h"

namespace offprof {

/// Returns how many steps to train for `measured` measured ones: at least two on a real GPU, since the first
/// one allocates device memory and pins host memory.
int steps_to_train(int measured, const Device& device);

/// Returns the figures of steps that PolicySteps::train ran on the device. On a real GPU the time of the
/// first of several does not count: the cache was released before it, so it allocates device memory anew. If
/// `program` carries tensors, nothing of it counts: it finds what steps under another policy have left.
Metrics figures_of_trained(const std::vector<StepResult>& steps, const StepProgram& program,
                           const Device& device);

/// Measures steps under the request's policy, records the steps of the timeline, and stores the results in
/// `result`, whose trace has the step program. All arguments must outlive the script. `tracing` is for the
/// device's GPU; nullptr: none. `tracing_cost` measures the cost of tracing; empty: it is not known.
StepScript<void> measure_policy(PolicySteps& steps, const RunRequest& request, Device& device,
                                const StepTracing* tracing, const std::function<TracingCost()>& tracing_cost,
                                RunResult& result);

/// Adds the device's notes to the trace.
void add_notes(Trace& trace, Device& device);

}  // namespace offprof
