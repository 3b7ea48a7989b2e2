#pragma once

#include <optional>
#include <vector>

#include "simulator/step.h"
#include "simulator/tune.h"
#include "traces/link.h"
#include "traces/policy.h"

namespace offprof {

/// What the step under `policy` would gain were one part of what its copies cost gone, each on its own; those
/// that gain anything, largest first.
std::vector<Relief> reliefs_of(const Step& step, const Policy& policy, const Link& link);

/// Whether a tensor is kept because the policy's cap on host memory has no room for it.
bool fills_host(const Step& step, const Policy& policy);

/// See MemoryPrice; nullopt: no candidate of the frontier is faster than `chosen`.
std::optional<MemoryPrice> memory_price(const std::vector<Candidate>& frontier, const Candidate& chosen);

/// `link` with so many times its bandwidth; what a copy costs beside does not change.
Link times_as_fast(Link link, double factor);

}  // namespace offprof
