#pragma once

#include <cstddef>
#include <ostream>

#include "tests/hazards/counting_device.h"

namespace offprof {

/// What a step must leave as it was.
struct Leftovers {
  Bytes device_bytes = 0, host_bytes = 0, disk_bytes = 0;
  std::size_t threads = 0, files = 0;
  bool operator==(const Leftovers&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Leftovers& leftovers);

/// What was ready to run when a backward failed, LibTorch keeps until the thread's next backward, and the
/// thread that runs a device's backward may be at it still. After this, a backward of tensors without bytes,
/// neither has any.
void settle_autograd(c10::Device device);

/// What there is once autograd has settled, of the device's and of the process's.
Leftovers leftovers_of(CountingDevice& device);

}  // namespace offprof
