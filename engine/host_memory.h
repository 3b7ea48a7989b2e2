#pragma once

#include <cstddef>
#include <utility>

#include "engine/device.h"
#include "traces/units.h"

namespace offprof {

/// Host memory of a device, given back when this goes: see Device::free_host. The device must outlive it.
class HostMemory {
 public:
  /// Throws what Device::allocate_host throws.
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

/// Nothing is under way on the device when this has gone, whatever has failed.
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
