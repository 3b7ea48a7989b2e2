#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/devices/device.h"
#include "traces/base/units.h"

namespace offprof {

/// Counts the memory of LibTorch's CPU allocator: live bytes, peak, and the id of each allocation. With a
/// capacity it throws c10::OutOfMemoryError as a device would. It counts bytes as requested.
///
/// Freed blocks are kept for the next request of the same size, the last one first, as the caching allocator
/// of a device does. So a step gets the same memory as the step before, still in the caches, whatever
/// happened to the heap meanwhile. It keeps no more bytes than were ever live at once.
class CountedAllocator final : public c10::Allocator {
 public:
  /// Replaces LibTorch's CPU allocator for the rest of the process. Call before any tensor is created.
  static CountedAllocator& install();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t count) const override;

  /// Returns nullopt if the storage has no bytes or its memory was not allocated here.
  std::optional<AllocationId> id_of(const c10::Storage& storage) const;
  /// Returns the id of the next allocation. Older allocations have smaller ids.
  AllocationId next_id() const;

  Bytes live_bytes() const;
  Bytes peak_bytes() const;
  void reset_peak();
  /// Limits the live bytes. nullopt: no limit but the machine's.
  void set_capacity(std::optional<Bytes> bytes);
  std::optional<OutOfMemory> take_out_of_memory();
  /// Sets the listener; nullptr: none. The listener must live until it is replaced.
  void set_listener(AllocationListener* listener);

 private:
  struct Header {
    AllocationId id;
    Bytes bytes;
  };
  static constexpr std::size_t kHeaderBytes = 64;  ///< keeps the alignment that vector kernels need

  CountedAllocator() = default;
  static CountedAllocator& instance();
  static void survive_forks();
  static Header* header_of(void* data);
  static void free(void* data);
  [[noreturn]] void refuse(Bytes bytes);
  void* take_block(Bytes bytes);
  void take_back(void* data);
  void release_kept();

  mutable std::mutex mutex_;
  AllocationId next_id_ = 1;
  Bytes live_bytes_ = 0;
  Bytes peak_bytes_ = 0;
  Bytes most_live_bytes_ = 0;                           ///< maximum of live_bytes_ over the process
  std::unordered_map<Bytes, std::vector<void*>> kept_;  ///< blocks by requested size
  Bytes kept_bytes_ = 0;
  std::optional<Bytes> capacity_;
  std::optional<OutOfMemory> out_of_memory_;
  AllocationListener* listener_ = nullptr;
};

}  // namespace offprof
