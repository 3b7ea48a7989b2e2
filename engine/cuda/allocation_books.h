#pragma once

#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/cuda/expandable_ranges.h"
#include "engine/device.h"
#include "traces/units.h"

namespace offprof {

/// The books of PyTorch's CUDA caching allocator for one device, kept by listening to it: what is live, as
/// requested, what the peak was, who is who.
class AllocationBooks {
 public:
  /// Told of every block that is handed out or comes back, beside the listener, with the stream's handle.
  class BlockWatcher {
   public:
    virtual ~BlockWatcher() = default;
    virtual void on_block_allocated(const void* block, Bytes bytes, void* stream) = 0;
    virtual void on_block_freed(const void* block) = 0;
  };

  /// Of that device, which has so much memory, from the first call on and for the rest of the process: the
  /// allocator does not let a listener go. Call before anything is allocated.
  static AllocationBooks& of_device(c10::DeviceIndex device, Bytes device_bytes);

  std::optional<AllocationId> id_of(const c10::Storage& storage) const;
  std::optional<AllocationId> id_at(const void* address) const;
  AllocationId next_id() const;
  Bytes live_bytes() const;
  Bytes peak_bytes() const;
  Bytes reserved_bytes() const;
  /// Where the address range begins of which that is a mapped piece; nullopt: it is older than the books.
  std::optional<std::uintptr_t> range_begin(std::uintptr_t piece) const;
  void reset_peak();
  std::optional<OutOfMemory> take_out_of_memory();
  void set_listener(AllocationListener* listener);  ///< nullptr: nobody
  void set_watcher(BlockWatcher* watcher);          ///< nullptr: nobody
  void set_capacity(std::optional<Bytes> bytes);    ///< what OutOfMemory says it was
  /// From here on an allocation for any other stream is noted.
  void expect_streams(std::vector<void*> streams);
  bool saw_other_stream() const;

 private:
  struct Live {
    AllocationId id = 0;
    Bytes bytes = 0;
  };

  AllocationBooks(c10::DeviceIndex device, Bytes device_bytes);
  void on_alloc(const void* block, Bytes bytes, void* stream);
  void on_free(const void* block);
  void on_reserved(Bytes change);
  void on_mapped(std::uintptr_t piece, Bytes bytes);
  void on_unmapped(std::uintptr_t piece, Bytes bytes);

  mutable std::mutex mutex_;
  std::unordered_map<const void*, Live> live_;
  AllocationId next_id_ = 1;
  Bytes live_bytes_ = 0, peak_bytes_ = 0, reserved_bytes_ = 0;
  ExpandableRanges ranges_;
  std::optional<Bytes> capacity_;
  std::optional<OutOfMemory> out_of_memory_;
  AllocationListener* listener_ = nullptr;
  BlockWatcher* watcher_ = nullptr;
  std::vector<void*> expected_streams_;
  std::atomic<bool> saw_other_stream_ = false;
};

}  // namespace offprof
