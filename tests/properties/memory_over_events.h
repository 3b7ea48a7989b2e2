#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/recording/recorded_pass.h"
#include "simulator/replay/step.h"
#include "traces/model/policy.h"

namespace offprof {

/// Live bytes on the device and in host memory right after an allocation of the program.
struct LiveBytes {
  Bytes device = 0, host = 0;
  bool operator==(const LiveBytes&) const = default;
};

/// Returns the live bytes at every allocation of a step, as recorded or as replayed.
std::vector<LiveBytes> memory_at_allocations(const RecordedPass& pass);
std::vector<LiveBytes> memory_at_allocations(const Step& step, const Policy& policy);

/// Returns the first difference in words; nullopt if there is none.
std::optional<std::string> first_difference(const std::vector<LiveBytes>& measured,
                                            const std::vector<LiveBytes>& simulated);

}  // namespace offprof
