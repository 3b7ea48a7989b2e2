#pragma once

#include <optional>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/tune_result.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// Returns how much shorter the step under `policy` would be without each part of the copies' costs, one part
/// at a time. Only positive gains are returned, largest first.
std::vector<Relief> reliefs_of(const Step& step, const Policy& policy, const Link& link);

/// Returns true if a tensor is kept because the policy's cap on host memory has no room for it.
bool fills_host(const Step& step, const Policy& policy);

/// Returns the price of memory (see MemoryPrice); nullopt if no candidate of the frontier is faster than
/// `chosen`.
std::optional<MemoryPrice> memory_price(const std::vector<Candidate>& frontier, const Candidate& chosen);

/// Returns `link` with its bandwidth multiplied by `factor`; the other costs of a copy do not change.
Link times_as_fast(Link link, double factor);

}  // namespace offprof
