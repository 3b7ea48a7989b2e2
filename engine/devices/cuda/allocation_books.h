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

#include "engine/devices/cuda/expandable_ranges.h"
#include "engine/devices/device.h"
#include "engine/devices/virtual_gpu/gpu_blocks.h"
#include "traces/base/units.h"

namespace offprof {

/// Tracks PyTorch's CUDA caching allocator for one device by listening to it: live bytes, as requested, their
/// peak, and the id of each allocation.
class AllocationBooks {
 public:
  /// Returns the books of a device with `device_bytes` of memory. They exist from the first call to the end
  /// of the process, since the allocator cannot remove a listener. Blocks that are older than the books are
  /// entered in the first call, during which no other thread may allocate.
  static AllocationBooks& of_device(c10::DeviceIndex device, Bytes device_bytes);

  std::optional<AllocationId> id_of(const c10::Storage& storage) const;
  std::optional<AllocationId> id_at(const void* address) const;
  AllocationId next_id() const;
  Bytes live_bytes() const;
  Bytes peak_bytes() const;
  Bytes reserved_bytes() const;
  /// Returns the begin of the address range that contains the mapped `piece`; nullopt if it is older than the
  /// books.
  std::optional<std::uintptr_t> range_begin(std::uintptr_t piece) const;
  void reset_peak();
  std::optional<OutOfMemory> take_out_of_memory();
  void set_listener(AllocationListener* listener);  ///< nullptr: none
  /// Sets the receiver of every block that is allocated or freed, beside the listener; nullptr: none. It
  /// must outlive its use here.
  void set_watcher(GpuBlocks* watcher);
  /// Returns true if the allocator has not done a free yet that was requested.
  bool has_requested_frees() const;
  void set_capacity(std::optional<Bytes> bytes);  ///< the capacity that OutOfMemory reports
  /// Sets the streams by number: see kComputeStream. Others get numbers as they appear.
  void number_streams(std::vector<void*> streams);
  std::int32_t number_of(void* stream);
  /// Returns true if memory of other streams was allocated since number_streams.
  bool saw_other_stream() const;
  /// Returns the number of the stream that the storage's memory belongs to; kComputeStream for other memory.
  std::int32_t stream_of(const c10::Storage& storage) const;

 private:
  struct Live {
    AllocationId id = 0;
    Bytes bytes = 0;
    void* stream = nullptr;
    bool is_requested = false;  ///< its free is
  };

  AllocationBooks(c10::DeviceIndex device, Bytes device_bytes);
  void enter_older_blocks(c10::DeviceIndex device);
  std::int32_t number_of_locked(void* stream);
  void on_alloc(const void* block, Bytes bytes, void* stream);
  void on_free_requested(const void* block);
  void tell_requested_free(const void* freed);
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
  const void* requested_ = nullptr;  ///< block of the last free, which the listener does not know yet
  AllocationListener* listener_ = nullptr;
  GpuBlocks* watcher_ = nullptr;
  std::vector<void*> streams_;  ///< by number
  std::atomic<bool> saw_other_stream_ = false;
};

}  // namespace offprof
