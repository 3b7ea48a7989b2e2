#pragma once

#include <cstddef>
#include <vector>

#include "simulator/step.h"
#include "traces/policy.h"

namespace offprof {

/// `count` settings that span what a policy can be for this step, `count` being at least 3: the presets, and
/// thresholds, stashes, prefetch windows and plans spread evenly over their ranges, in the sizes that the
/// step saves. The same every time. Fewer where the step saves nothing that may move.
std::vector<Policy> spanning_policies(const Step& step, std::size_t count);

}  // namespace offprof
