#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/copy_record.h"
#include "engine/device_disk.h"
#include "traces/allocator_state.h"
#include "traces/error.h"
#include "traces/link.h"
#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

/// Identity of a device allocation: counted from 1, never used twice in a process.
using AllocationId = std::int64_t;

/// Told of every allocation and free on the device, in order, on the thread that makes it. It must not
/// allocate device memory.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void on_alloc(AllocationId id, Bytes bytes) = 0;
  virtual void on_free(AllocationId id, Bytes bytes) = 0;
  /// The caching allocator holds that much of the device's memory now.
  virtual void on_reserved(Bytes reserved_bytes) { (void)reserved_bytes; }
};

/// One copy to be made, between device memory and host memory that allocate_host gave out.
struct CopyRequest {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;
  CopyDirection direction = CopyDirection::kD2h;
  std::int64_t tag = 0;  ///< comes back in the record
};

/// A request for device memory that was refused.
struct OutOfMemory {
  Bytes asked_bytes = 0;
  Bytes live_bytes = 0;
  std::optional<Bytes> capacity_bytes;  ///< nullopt: the machine itself had no more
};

/// Where tensors live, seen from the engine: memory with its books, host memory to offload to, one copy
/// stream per direction beside the compute stream, and a clock. Sizes count as requested.
///
/// A step drives it from one thread at a time: autograd may run backward on a thread of its own while the
/// caller waits.
class Device {
 public:
  /// A point of a copy queue.
  using Event = std::uint64_t;
  /// A point of the compute stream, whose time is known once the device is idle.
  using TimeMark = std::int64_t;
  /// A mark that could not be made. It has no time.
  static constexpr TimeMark kFailedMark = -1;

  virtual ~Device() = default;

  virtual c10::Device torch_device() const = 0;
  /// `CPU, 2 cores`: for the trace, without anything that names the machine.
  virtual std::string description() const = 0;
  /// Nothing is computed, so tensors have no values, and times are modelled.
  virtual bool is_virtual() const { return false; }
  /// What the device itself has; nullopt: it has what the machine has.
  virtual std::optional<Bytes> memory_bytes() const { return std::nullopt; }
  /// What its user should know and has not been told yet, a sentence each.
  virtual std::vector<std::string> take_notes() { return {}; }

  /// From here on the calling thread computes, with so many threads that it has not started yet. A device
  /// whose copies take cores takes them apart from those, if there are enough.
  virtual void prepare_cores(int compute_threads) { (void)compute_threads; }

  /// What a cache line takes now from the core that computes to the one that copies and back. No step may be
  /// under way. nullopt: copies have no core to themselves.
  virtual std::optional<Nanoseconds> core_to_core_ns() { return std::nullopt; }

  // --- Memory ---

  /// nullopt: the storage's memory is not this device's, or it has no bytes.
  virtual std::optional<AllocationId> allocation_of(const c10::Storage& storage) const = 0;
  /// The id that the next allocation gets: what has a smaller one is older.
  virtual AllocationId next_allocation() const = 0;
  /// Throws c10::OutOfMemoryError.
  virtual c10::Storage allocate(Bytes bytes) = 0;
  virtual Bytes live_bytes() const = 0;
  virtual Bytes peak_bytes() const = 0;
  /// Of the caching allocator as well.
  virtual void reset_peak() = 0;
  /// nullopt: no limit but the machine's.
  virtual void set_capacity(std::optional<Bytes> bytes) = 0;
  /// The last refusal since the last call. LibTorch's interpreter hides what kind of error it passes on.
  virtual std::optional<OutOfMemory> take_out_of_memory() = 0;
  /// nullptr: nobody listens.
  virtual void set_listener(AllocationListener* listener) = 0;

  // --- The caching allocator, where there is one ---

  /// Since the last reset_peak; nullopt: the device has none.
  virtual std::optional<CacheUse> cache_use() const { return std::nullopt; }
  /// Gives back to the device what the allocator holds but nobody uses.
  virtual void release_cache() {}
  /// What the allocator holds. `storage_of` says which Program storage an allocation is, -1: none.
  virtual std::optional<AllocatorState> allocator_state(
      const std::function<std::int32_t(AllocationId)>& storage_of) const {
    (void)storage_of;
    return std::nullopt;
  }

  /// What is used of the device's memory beside what the allocator holds: CUDA's own, libraries', other
  /// processes'. nullopt: the device has no memory of its own.
  virtual std::optional<Bytes> used_beside_allocator() const { return std::nullopt; }

  // --- Host memory for offloaded tensors ---

  /// Throws Error (environment) where it is exhausted.
  virtual std::byte* allocate_host(Bytes bytes) = 0;
  /// Its copies are over, or compute waits for them.
  virtual void free_host(std::byte* buffer, Bytes bytes) = 0;
  /// nullopt: no limit but the machine's.
  virtual void set_host_capacity(std::optional<Bytes> bytes) = 0;
  /// Pinned memory that is held for allocate_host, in use or not; nullopt: it is not pinned.
  virtual std::optional<Bytes> host_reserved_bytes() const { return std::nullopt; }
  /// Waits until the device is idle, gives pinned memory back that nobody uses, and returns its bytes.
  virtual Bytes trim_host() { return 0; }
  /// What allocate_host last threw, if it did since the last call: where it threw inside a TorchScript
  /// module, the interpreter has made something else of it.
  virtual std::optional<Error> take_host_refusal() = 0;

  // --- Compute ---

  /// Throws Error (input) where the program computes on another stream than the one that copies are ordered
  /// with: the calling thread does now, or memory was allocated for one before.
  virtual void check_compute_stream() {}
  /// What check_compute_stream last threw, if it did since the last call. See take_host_refusal.
  virtual std::optional<Error> take_stream_refusal() { return std::nullopt; }

  // --- Copies ---

  /// Queues a copy, after all that the compute stream was given so far.
  virtual Event copy(CopyQueue queue, const CopyRequest& request) = 0;
  /// Likewise out of a tensor whose elements do not lie densely: they come densely, in the order of its
  /// strides, into `to`. A device with a caching allocator takes device memory for it and gives it back at
  /// once.
  virtual Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to,
                                 std::int64_t tag) = 0;
  /// The compute stream waits for the event.
  virtual void wait(CopyQueue queue, Event event) = 0;
  /// Waits until every queue is idle and hands out what their copies took since the last call.
  virtual std::vector<CopyRecord> take_copy_records() = 0;
  /// The link where it is known without measuring it: of a device on virtual clocks.
  virtual std::optional<Link> known_link() const { return std::nullopt; }

  // --- The disk ---

  /// Makes a disk to offload to, in the place of one that was there; no step may be under way. Throws Error
  /// (input): no file can be made in the folder, or this device has no such disk.
  virtual void open_disk(const DiskRequest& request) = 0;
  /// nullptr: none was opened.
  virtual DeviceDisk* disk() = 0;

  // --- Time ---

  /// On any thread, whatever others do. Called in destructors and deleters, so it throws nothing: it returns
  /// kFailedMark, and the device keeps the first failure for take_mark_failure.
  virtual TimeMark mark() noexcept = 0;
  /// The first failure of `mark` since the last call or the last forget_marks; nullptr: none.
  virtual std::exception_ptr take_mark_failure() { return nullptr; }
  /// Waits until the device is idle.
  virtual void synchronize() = 0;
  /// On the device's clock. The device must have been idle since the mark was made. Throws Error
  /// (environment) for kFailedMark.
  virtual Nanoseconds time_of(TimeMark mark) const = 0;
  /// Marks made so far are not asked for any more.
  virtual void forget_marks() {}
  /// What the compute stream was given since the last call, and what that takes; nullopt: the device cannot
  /// tell.
  virtual std::optional<Work> take_work() { return std::nullopt; }
  /// How long the compute stream stood waiting for copies since the last call. The device must be idle.
  virtual Nanoseconds take_exposed_ns() = 0;
};

/// Throws the first failure of `mark`, if one failed: to be called before marks are asked for their times.
inline void check_marks(Device& device) {
  if (const std::exception_ptr failure = device.take_mark_failure()) std::rethrow_exception(failure);
}

/// After something has failed: nothing is under way when it returns. A device that cannot even become idle
/// copies nothing any more.
inline void become_idle(Device& device) noexcept {
  try {
    device.synchronize();
  } catch (...) {
  }
}

}  // namespace offprof
