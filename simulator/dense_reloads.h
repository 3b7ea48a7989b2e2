#pragma once

#include <vector>

#include "engine/schedule/scheduler.h"
#include "simulator/step.h"
#include "traces/policy.h"
#include "traces/program.h"

namespace offprof {

/// TRL's rules at their most: every tensor is copied on its own and comes back densely packed, but for what
/// the first node that asks finds in the stash.
Policy dense_offload_all();

/// The saved tensors that a step under `policy`, of TRL's rules, copies back in, in ascending order. `step`:
/// a step of such a policy, as far as it is known.
std::vector<SavedId> reloaded_tensors(const Step& step, const Policy& policy);

/// Those of `tensors` whose layout a dense copy changes: their elements do not lie densely. `program` saved
/// them.
std::vector<SavedId> changed_by_dense_copies(const Program& program, std::vector<SavedId> tensors);

}  // namespace offprof
