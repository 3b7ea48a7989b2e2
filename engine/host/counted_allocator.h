#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/device.h"
#include "traces/units.h"

namespace offprof {

/// The CPU allocator of LibTorch with the books kept: what is live, what the peak was, who is who. With a
/// capacity it throws c10::OutOfMemoryError as a device would. Counts bytes as requested.
///
/// Blocks that come back are kept for the next request of their size, the last one first, as a device's
/// caching allocator does: so a step finds the same memory as the step before, still in the caches, whatever
/// the heap has gone through meanwhile. No more is kept than has been live at once.
class CountedAllocator final : public c10::Allocator {
 public:
  /// Puts one in the place of LibTorch's CPU allocator for the rest of the process. Call before any tensor is
  /// made.
  static CountedAllocator& install();

  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t count) const override;

  /// nullopt where the storage's memory is not from here, or has no bytes.
  std::optional<AllocationId> id_of(const c10::Storage& storage) const;
  /// The id that the next allocation gets: what has a smaller one is older.
  AllocationId next_id() const;

  Bytes live_bytes() const;
  Bytes peak_bytes() const;
  void reset_peak();
  /// nullopt: no limit but the machine's.
  void set_capacity(std::optional<Bytes> bytes);
  std::optional<OutOfMemory> take_out_of_memory();
  /// nullptr: nobody. It must stay alive until it is taken out.
  void set_listener(AllocationListener* listener);

 private:
  struct Header {
    AllocationId id;
    Bytes bytes;
  };
  static constexpr std::size_t kHeaderBytes = 64;  ///< keeps the alignment that vector kernels want

  CountedAllocator() = default;
  static CountedAllocator& instance();
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
  Bytes most_live_bytes_ = 0;                           ///< ever
  std::unordered_map<Bytes, std::vector<void*>> kept_;  ///< blocks by the bytes asked for
  Bytes kept_bytes_ = 0;
  std::optional<Bytes> capacity_;
  std::optional<OutOfMemory> out_of_memory_;
  AllocationListener* listener_ = nullptr;
};

}  // namespace offprof
