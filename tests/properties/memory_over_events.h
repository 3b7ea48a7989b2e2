#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/recorded_pass.h"
#include "simulator/step.h"
#include "traces/policy.h"

namespace offprof {

/// What is live on the device and in host memory right after an allocation of the program's.
struct LiveBytes {
  Bytes device = 0, host = 0;
  bool operator==(const LiveBytes&) const = default;
};

/// At every allocation of a step as it was recorded, and as it is replayed.
std::vector<LiveBytes> memory_at_allocations(const RecordedPass& pass);
std::vector<LiveBytes> memory_at_allocations(const Step& step, const Policy& policy);

/// Where they differ first, in words; nullopt: nowhere.
std::optional<std::string> first_difference(const std::vector<LiveBytes>& measured,
                                            const std::vector<LiveBytes>& simulated);

}  // namespace offprof
