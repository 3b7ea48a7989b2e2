#pragma once

#include <cstddef>
#include <utility>

#include "engine/devices/compute_stream.h"
#include "engine/devices/host_allocator.h"
#include "traces/base/units.h"

namespace offprof {

/// Owns host memory and frees it on destruction: see HostAllocator::free_host. The allocator must outlive it.
class HostMemory {
 public:
  /// Throws the exceptions of HostAllocator::allocate_host.
  HostMemory(HostAllocator& allocator, Bytes bytes)
      : allocator_(&allocator), memory_(allocator.allocate_host(bytes)), bytes_(bytes) {}
  HostMemory(HostMemory&& other) noexcept
      : allocator_(other.allocator_), memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  HostMemory& operator=(HostMemory&&) = delete;
  ~HostMemory() {
    if (memory_ != nullptr) allocator_->free_host(memory_, bytes_);
  }

  std::byte* get() const { return memory_; }
  Bytes bytes() const { return bytes_; }

 private:
  HostAllocator* allocator_;
  std::byte* memory_;
  Bytes bytes_;
};

/// Makes the device idle on destruction, even after a failure.
class IdleAtEnd {
 public:
  explicit IdleAtEnd(ComputeStream& stream) : stream_(stream) {}
  ~IdleAtEnd() { become_idle(stream_); }
  IdleAtEnd(const IdleAtEnd&) = delete;
  IdleAtEnd& operator=(const IdleAtEnd&) = delete;

 private:
  ComputeStream& stream_;
};

}  // namespace offprof
