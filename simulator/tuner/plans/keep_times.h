#pragma once

#include <vector>

#include "simulator/replay/step.h"
#include "traces/base/units.h"
#include "traces/model/link.h"

namespace offprof {

/// Returns when a step that keeps all tensors reaches each event of Step::events(), and its end as the last
/// entry.
std::vector<Nanoseconds> keep_times(const Step& step, const Link& link);

}  // namespace offprof
