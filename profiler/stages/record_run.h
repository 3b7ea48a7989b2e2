#pragma once

#include <memory>
#include <vector>

#include "engine/transforms/transform.h"
#include "profiler/plugin/plugin.h"
#include "profiler/stages/record_program.h"
#include "profiler/steps/step_script.h"
#include "traces/model/trace.h"

namespace offprof {

/// Returns the transforms that the request names, in its rules and beside them, each once.
std::vector<std::shared_ptr<const Transform>> transforms_of(const RunRequest& request);

/// Returns true if recompute steps are searched for: the policy or the request's transforms need them.
bool asks_for_recomputations(const RunRequest& request);

/// Returns the environment of a run on `device`, with the device's own link if it is known.
Environment environment_of(const RunRequest& request, const Device& device);

/// Throws Error (input) if `policy` places tensors on a disk and the device has none.
void require_disk(const Policy& policy, Device& device);

/// Records and calibrates the steps of `source`, whose warm-up is over, and stores the step program, the
/// link, the calibration and the costs of `transforms` in `trace`. Returns the guide of the program. All
/// arguments must outlive the script. `offloads_parameters`: steps load parameters from elsewhere. Throws
/// Error (input) if the steps are not alike, or if the rules of the request's policy do not fit them.
StepScript<StepGuide> record_run(const StepSource& source, const RunRequest& request,
                                 const std::vector<std::shared_ptr<const Transform>>& transforms,
                                 bool offloads_parameters, Trace& trace);

}  // namespace offprof
