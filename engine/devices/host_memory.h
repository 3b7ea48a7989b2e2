#pragma once

#include <cstddef>
#include <utility>

#include "engine/devices/device.h"
#include "traces/base/units.h"

namespace offprof {

/// Owns host memory of a device and frees it on destruction: see Device::free_host. The device must outlive
/// it.
class HostMemory {
 public:
  /// Throws the exceptions of Device::allocate_host.
  HostMemory(Device& device, Bytes bytes)
      : device_(&device), memory_(device.allocate_host(bytes)), bytes_(bytes) {}
  HostMemory(HostMemory&& other) noexcept
      : device_(other.device_), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  HostMemory& operator=(HostMemory&&) = delete;
  ~HostMemory() {
    if (memory_ != nullptr) device_->free_host(memory_, bytes_);
  }

  std::byte* get() const { return memory_; }
  Bytes bytes() const { return bytes_; }

 private:
  Device* device_;
  std::byte* memory_;
  Bytes bytes_;
};

/// Makes the device idle on destruction, even after a failure.
class IdleAtEnd {
 public:
  explicit IdleAtEnd(Device& device) : device_(device) {}
  ~IdleAtEnd() { become_idle(device_); }
  IdleAtEnd(const IdleAtEnd&) = delete;
  IdleAtEnd& operator=(const IdleAtEnd&) = delete;

 private:
  Device& device_;
};

}  // namespace offprof
