#pragma once

#include <memory>
#include <vector>

#include "engine/transforms/transform.h"
#include "profiler/plugin/plugin.h"
#include "profiler/stages/record_program.h"
#include "profiler/steps/step_script.h"
#include "traces/model/trace.h"

namespace offprof {

/// Adds to the request what its fallback needs, since a plan may give way to it only after the recording.
RunRequest with_needs_of_fallback(RunRequest request);

/// Returns the policy before the recording: the request's or, if that has a plan for another run than that of
/// `trace`, its fallback. A plan whose saved tensors are known is judged by them, in record_run. Adds notes
/// to `trace`. Throws Error (input) as policy_for_step does.
Policy policy_beforehand(const RunRequest& request, Trace& trace);

/// Returns the transforms that the request names, in its rules and beside them, each once.
std::vector<std::shared_ptr<const Transform>> transforms_of(const RunRequest& request);

/// Returns true if recompute steps are searched for: the policy or the request's transforms need them.
bool asks_for_recomputations(const RunRequest& request);

/// Returns the environment of a run on `device`, with the device's own link if it is known.
Environment environment_of(const RunRequest& request, const Device& device);

/// Throws Error (input) if `policy` places tensors on a disk and the device has none.
void require_disk(const Policy& policy, Device& device);

/// Records and calibrates the steps of `source`, whose warm-up is over, and stores the step program, the
/// link, the calibration, the costs of `transforms` and the policy for the recorded step in `trace`. Returns
/// the guide of the program. All arguments must outlive the script. `offloads_parameters`: steps load
/// parameters from elsewhere. Throws Error (input) if the steps are not alike, or if the request's policy
/// does not fit them.
StepScript<StepGuide> record_run(const StepSource& source, const RunRequest& request,
                                 const std::vector<std::shared_ptr<const Transform>>& transforms,
                                 bool offloads_parameters, Trace& trace);

}  // namespace offprof
