#pragma once

#include <vector>

#include "engine/scheduler/scheduler.h"
#include "simulator/replay/step.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Returns the TRL policy that moves the most: every tensor is copied separately and comes back densely
/// packed, except the tensor that the first backward node finds in the stash.
Policy dense_offload_all();

/// Returns, in ascending order, the saved tensors that a step under `policy` (TRL's rules) copies back in.
/// `step` is a step of such a policy, as far as it is known.
std::vector<SavedId> reloaded_tensors(const Step& step, const Policy& policy);

/// Returns those of `tensors` whose layout is changed by a dense copy, because their elements are not dense.
/// `program` is the step program that saved them.
std::vector<SavedId> changed_by_dense_copies(const StepProgram& program, std::vector<SavedId> tensors);

}  // namespace offprof
