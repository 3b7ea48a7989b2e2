#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/model/allocator_state.h"
#include "traces/model/copy_record.h"
#include "traces/model/link.h"
#include "traces/model/work.h"

namespace offprof {

/// Identity of a device allocation: counted from 1, never reused in a process.
using AllocationId = std::int64_t;

/// Is notified of every allocation and free on the device, in order, on the thread that makes it. It must not
/// allocate device memory.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void on_alloc(AllocationId id, Bytes bytes) = 0;
  virtual void on_free(AllocationId id, Bytes bytes) = 0;
  /// The caching allocator now holds `reserved_bytes` of the device's memory.
  virtual void on_reserved(Bytes reserved_bytes) { (void)reserved_bytes; }
};

/// One copy between device memory and host memory that allocate_host returned.
struct CopyRequest {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;
  CopyDirection direction = CopyDirection::kD2h;
  std::int64_t tag = 0;  ///< returned in the record
};

/// A device memory request that was refused.
struct OutOfMemory {
  Bytes asked_bytes = 0;
  Bytes live_bytes = 0;
  std::optional<Bytes> capacity_bytes;  ///< nullopt: the machine itself was out of memory
};

/// A device as the engine sees it: device memory with accounting, host memory to offload to, one copy stream
/// per direction beside the compute stream, and a clock. Sizes count as requested.
///
/// A step drives it from one thread at a time: autograd may run backward on a thread of its own while the
/// caller waits.
class Device {
 public:
  /// A point in a copy queue.
  using Event = std::uint64_t;
  /// A point in the compute stream. Its time is known once the device is idle.
  using TimeMark = std::int64_t;
  /// A mark that could not be made. It has no time.
  static constexpr TimeMark kFailedMark = -1;

  virtual ~Device() = default;

  virtual c10::Device torch_device() const = 0;
  /// Describes the device for the trace (`CPU, 2 cores`), without anything that identifies the machine.
  virtual std::string description() const = 0;
  /// Returns true if nothing is computed: tensors have no values and times are modelled.
  virtual bool is_virtual() const { return false; }
  /// Returns the device's own memory; nullopt: it uses the machine's memory.
  virtual std::optional<Bytes> memory_bytes() const { return std::nullopt; }
  /// Returns notes for the user that were not returned before, a sentence each.
  virtual std::vector<std::string> take_notes() { return {}; }

  /// Prepares the calling thread to compute, with `compute_threads` threads that it has not started yet. A
  /// device whose copies need cores reserves them apart from those threads, if there are enough.
  virtual void prepare_cores(int compute_threads) { (void)compute_threads; }

  /// Measures the current round trip of a cache line between the core that computes and the core that copies.
  /// No step may be in progress. nullopt: copies have no core of their own.
  virtual std::optional<Nanoseconds> core_to_core_ns() { return std::nullopt; }

  // --- Memory ---

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

  // --- Host memory for offloaded tensors ---

  /// Allocates host memory for offloaded tensors. Throws Error (environment) if it is exhausted.
  virtual std::byte* allocate_host(Bytes bytes) = 0;
  /// Frees a buffer. Its copies must be complete, or compute must wait for them.
  virtual void free_host(std::byte* buffer, Bytes bytes) = 0;
  /// Limits the host memory; nullopt: no limit but the machine's.
  virtual void set_host_capacity(std::optional<Bytes> bytes) = 0;
  /// Returns the pinned memory that is held for allocate_host, in use or not; nullopt: the host memory is not
  /// pinned.
  virtual std::optional<Bytes> host_reserved_bytes() const { return std::nullopt; }
  /// Waits until the device is idle, frees unused pinned memory and returns its bytes.
  virtual Bytes trim_host() { return 0; }
  /// Returns the Error that allocate_host threw last since the last call, if any. Inside a TorchScript
  /// module, the interpreter replaces that exception by another.
  virtual std::optional<Error> take_host_refusal() = 0;

  // --- Compute ---

  /// Throws Error (input) if the model computes on another stream than the one that copies are ordered with:
  /// if the calling thread does so now, or if memory was allocated for another stream before.
  virtual void check_compute_stream() {}
  /// Returns the Error that check_compute_stream threw last since the last call, if any. See
  /// take_host_refusal.
  virtual std::optional<Error> take_stream_refusal() { return std::nullopt; }

  // --- Copies ---

  /// Queues a copy after all work that the compute stream has been given so far.
  virtual Event copy(CopyQueue queue, const CopyRequest& request) = 0;
  /// Queues a copy, as `copy` does, of a tensor whose elements are not dense in memory. `to` receives them
  /// densely, in the order of the tensor's strides. A device with a caching allocator takes device memory for
  /// this and frees it at once.
  virtual Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to,
                                 std::int64_t tag) = 0;
  /// Makes the compute stream wait for the event.
  virtual void wait(CopyQueue queue, Event event) = 0;
  /// Waits until every queue is idle and returns the records of their copies since the last call.
  virtual std::vector<CopyRecord> take_copy_records() = 0;
  /// Returns the link if it is known without measuring, as on a device with virtual clocks.
  virtual std::optional<Link> known_link() const { return std::nullopt; }

  // --- The disk ---

  /// Opens a disk to offload to, replacing one that was open; no step may be in progress. Throws Error
  /// (input) if no file can be made in the folder, or if this device has no such disk.
  virtual void open_disk(const DiskRequest& request) = 0;
  /// Returns the open disk; nullptr: none was opened.
  virtual DeviceDisk* disk() = 0;

  // --- Time ---

  /// Marks the compute stream. May be called on any thread, at any time. It is called in destructors and
  /// deleters, so it throws nothing: on failure it returns kFailedMark, and the device keeps the first
  /// failure for take_mark_failure.
  virtual TimeMark mark() noexcept = 0;
  /// Returns the first failure of `mark` since the last call or the last forget_marks; nullptr: none.
  virtual std::exception_ptr take_mark_failure() { return nullptr; }
  /// Waits until the device is idle.
  virtual void synchronize() = 0;
  /// Returns the time of `mark` on the device's clock. The device must have been idle since the mark was
  /// made. Throws Error (environment) for kFailedMark.
  virtual Nanoseconds time_of(TimeMark mark) const = 0;
  /// Drops all marks made so far: their times are not needed any more.
  virtual void forget_marks() {}
  /// Returns the work given to the compute stream since the last call, with its duration; nullopt: the device
  /// cannot measure it.
  virtual std::optional<Work> take_work() { return std::nullopt; }
  /// Returns the time that the compute stream stalled on copies since the last call. The device must be idle.
  virtual Nanoseconds take_exposed_ns() = 0;
};

/// Throws the first failure of `mark`, if any. Call it before asking for the times of marks.
inline void check_marks(Device& device) {
  if (const std::exception_ptr failure = device.take_mark_failure()) std::rethrow_exception(failure);
}

/// Waits, after a failure, until the device has no work in progress. A device that cannot become idle makes
/// no more copies.
inline void become_idle(Device& device) noexcept {
  try {
    device.synchronize();
  } catch (...) {
  }
}

}  // namespace offprof
