#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "traces/base/units.h"
#include "traces/model/allocator_state.h"

namespace offprof {

/// Identity of a device allocation: counted from 1, never reused in a process.
using AllocationId = std::int64_t;

/// Is notified of every allocation and free on the device, in order, on the thread that makes it. It must not
/// allocate device memory.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  /// `stream` is that of the caching allocator's pool: see kComputeStream.
  virtual void on_alloc(AllocationId id, Bytes bytes, std::int32_t stream) = 0;
  /// The program frees memory that other streams may still use. It stays in use until on_free. The streams
  /// have to reach `points` (see StreamCommand) before; empty: not known.
  virtual void on_free_requested(AllocationId id, std::span<const std::int32_t> points) {
    (void)id, (void)points;
  }
  virtual void on_free(AllocationId id, Bytes bytes, std::int32_t stream) = 0;
  /// The caching allocator now holds `reserved_bytes` of the device's memory.
  virtual void on_reserved(Bytes reserved_bytes) { (void)reserved_bytes; }
};

/// A device memory request that was refused.
struct OutOfMemory {
  Bytes asked_bytes = 0;
  Bytes live_bytes = 0;
  std::optional<Bytes> capacity_bytes;  ///< nullopt: the machine itself was out of memory
};

/// Device memory with accounting, and the caching allocator, if there is one. Sizes count as requested.
class DeviceAllocator {
 public:
  virtual ~DeviceAllocator() = default;

  /// Returns the device's own memory; nullopt: it uses the machine's memory.
  virtual std::optional<Bytes> memory_bytes() const { return std::nullopt; }
  /// Returns the storage's allocation; nullopt: its memory is not this device's, or it has no bytes.
  virtual std::optional<AllocationId> allocation_of(const c10::Storage& storage) const = 0;
  /// Returns the id that the next allocation gets: allocations with a smaller id are older.
  virtual AllocationId next_allocation() const = 0;
  /// Allocates device memory. Throws c10::OutOfMemoryError.
  virtual c10::Storage allocate(Bytes bytes) = 0;
  virtual Bytes live_bytes() const = 0;
  virtual Bytes peak_bytes() const = 0;
  /// Resets peak_bytes, and the peaks of the caching allocator.
  virtual void reset_peak() = 0;
  /// Resets peak_bytes alone: the peaks of the caching allocator may be read by the program.
  virtual void reset_own_peak() { reset_peak(); }
  /// Limits the device memory; nullopt: no limit but the machine's.
  virtual void set_capacity(std::optional<Bytes> bytes) = 0;
  /// Returns the last refusal since the last call. LibTorch's interpreter hides the type of an error that it
  /// passes on.
  virtual std::optional<OutOfMemory> take_out_of_memory() = 0;
  /// Sets the listener of allocations; nullptr: none.
  virtual void set_listener(AllocationListener* listener) = 0;

  // --- The caching allocator, if there is one ---

  /// Returns the use since the last reset_peak; nullopt: the device has no caching allocator.
  virtual std::optional<CacheUse> cache_use() const { return std::nullopt; }
  /// Returns unused cached memory of the allocator to the device.
  virtual void release_cache() {}
  /// On an idle device, frees the memory whose free is requested, which the allocator would do at its next
  /// request. It makes one, of a byte, if there is such memory.
  virtual void finish_frees() {}
  /// Returns the allocator's segments and blocks. `storage_of` maps an allocation to its storage in the step
  /// program; -1: none.
  virtual std::optional<AllocatorState> allocator_state(
      const std::function<std::int32_t(AllocationId)>& storage_of) const {
    (void)storage_of;
    return std::nullopt;
  }

  /// Returns the device memory in use outside the allocator: by CUDA, libraries and other processes. nullopt:
  /// the device has no memory of its own.
  virtual std::optional<Bytes> used_beside_allocator() const { return std::nullopt; }
};

}  // namespace offprof
