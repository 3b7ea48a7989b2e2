#pragma once

#include <cstdint>

namespace offprof {

/// Counts of what a device was asked for.
struct DeviceCounts {
  std::int64_t allocations = 0;  ///< of device memory
  std::int64_t commands = 0;     ///< see ComputeStream::commands_given

  friend DeviceCounts operator+(const DeviceCounts& a, const DeviceCounts& b) {
    return {a.allocations + b.allocations, a.commands + b.commands};
  }
  friend DeviceCounts operator-(const DeviceCounts& a, const DeviceCounts& b) {
    return {a.allocations - b.allocations, a.commands - b.commands};
  }
};

}  // namespace offprof
