#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <set>
#include <string>

#include "tests/hazards/counting_device.h"

namespace offprof {

/// What there is of a device and of the process at some moment, which a step must leave as it was.
struct Leftovers {
  Bytes device_bytes = 0, host_bytes = 0, disk_bytes = 0;
  std::set<pid_t> threads;  ///< by the kernel's ids
  std::size_t files = 0;    ///< open ones
};

/// Runs a backward of tensors without bytes. LibTorch keeps what was ready to run when a backward failed
/// until the thread's next backward, and the thread that runs a device's backward may still hold it; after
/// this neither does.
void settle_autograd(c10::Device device);

/// Returns what there is once autograd has settled.
Leftovers leftovers_of(CountingDevice& device);

/// Returns in words what is there that was not there `before`; empty: nothing. Bytes must be the same.
/// Threads and files must not have been added; a thread that was ending `before` may be gone. A thread whose
/// work is done needs time to end, so the check is repeated until nothing is added, for `patience` at most.
std::string left_since(const Leftovers& before, CountingDevice& device,
                       std::chrono::milliseconds patience = std::chrono::seconds(10));

}  // namespace offprof
