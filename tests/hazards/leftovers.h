#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/hazards/counting_device.h"

namespace offprof {

/// Resources of the device and the process at one moment. A step must leave them unchanged.
struct Leftovers {
  Bytes device_bytes = 0, host_bytes = 0, disk_bytes = 0;
  std::set<pid_t> threads;  ///< ids of the kernel
  /// Sorted paths of the open files. Those of the GPU's driver are left out: it opens more when it needs
  /// them.
  std::vector<std::string> files;
};

/// Runs a backward of tensors without bytes. When a backward fails, LibTorch keeps its ready tasks until the
/// thread's next backward, and the thread that runs the device's backward may still hold the last one. After
/// this call neither holds anything.
void settle_autograd(c10::Device device);

/// Returns the resources in use after autograd has settled.
Leftovers leftovers_of(CountingDevice& device);

/// Returns in words the resources that were not in use `before`; empty: none. Bytes must be the same. No
/// thread or file may have been added; a thread that was ending `before` may be gone. A thread that has
/// finished needs time to end, so the check is repeated until nothing is added, for at most `patience`.
std::string left_since(const Leftovers& before, CountingDevice& device,
                       std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace offprof
