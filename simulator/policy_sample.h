#pragma once

#include <cstddef>
#include <vector>

#include "simulator/step.h"
#include "traces/policy.h"

namespace offprof {

/// `count` settings that span what a policy can be for this step, `count` being at least 3: the presets; then
/// thresholds, plans and, more rarely, TRL's rules with another threshold and stash. Thresholds, shares of
/// the step that a plan moves, stashes (counted or in bytes), prefetch windows and the number of copy streams
/// are each spread evenly over their ranges, in the sizes that the step saves. The same every time; `keep` is
/// the first. Fewer where the step saves nothing that may move.
std::vector<Policy> spanning_policies(const Step& step, std::size_t count);

}  // namespace offprof
