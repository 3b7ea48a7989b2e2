#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "engine/devices/virtual_gpu/state/address_range.h"
#include "traces/base/units.h"

namespace offprof {

/// Memory of the virtual GPU, in granules: the allocations of cudaMalloc, and the virtual memory of the
/// driver's `cuMem*` family (address ranges, physical memory, and the mappings between them).
///
/// A later allocation lies lower, as the driver places them (traces/recorded: H100 and H200, driver 580.159).
/// PyTorch's allocator takes the lowest of equal blocks, so reserved memory depends on it. No address that
/// was ever backed is reused. The addresses lie in a reserved range of address space that takes no memory. In
/// a real device memory, pages get memory when they are touched. Not thread-safe.
class AddressSpace {
 public:
  /// Granularity of the driver's mappings on current GPUs (cuMemGetAllocationGranularity).
  static constexpr Bytes kGranule = 2 * kMiB;

  using Handle = std::uint64_t;

  /// Reserves the address space. Throws Error (environment) if there is none left.
  AddressSpace();
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Sets the limit of used bytes.
  void set_limit(Bytes bytes) { limit_bytes_ = bytes; }
  Bytes limit_bytes() const { return limit_bytes_; }
  Bytes used_bytes() const { return used_bytes_; }

  /// Makes memory that is given out from now on readable and writable, or not.
  void set_real(bool is_real);

  /// cudaMalloc: allocates `bytes`, rounded up to granules. Returns nullptr beyond the limit.
  void* allocate(Bytes bytes);
  /// cudaFree. Returns nullopt if nothing was allocated at that address.
  std::optional<AddressRange> free(void* address);

  /// Returns room for a variable of a module. It is never freed and not counted, since it belongs to the
  /// memory that the device's context takes.
  void* place_variable(Bytes bytes);

  /// cuMemAddressReserve. Returns nullptr if there is no room or `bytes` is not a multiple of the granule.
  void* reserve(Bytes bytes);
  /// cuMemAddressFree: releases a reservation, which must be whole and without mappings.
  bool release_reservation(void* address, Bytes bytes);
  /// cuMemCreate. Returns nullopt beyond the limit, or if `bytes` is not a multiple of the granule.
  std::optional<Handle> create(Bytes bytes);
  /// cuMemRelease. The memory counts as used until the last mapping of it is gone too.
  bool release(Handle handle);
  /// cuMemRetainAllocationHandle: returns the handle of the mapping at that address, which must be released
  /// once more.
  std::optional<Handle> retain(const void* address);
  /// cuMemMap of a whole handle. Returns false outside a reservation, over another mapping, or if the sizes
  /// differ.
  bool map(void* address, Bytes bytes, Handle handle);
  /// cuMemUnmap of whole mappings that fill the range.
  bool unmap(void* address, Bytes bytes);
  /// cuMemSetAccess: returns true if all of the range is mapped.
  bool is_mapped(const void* address, Bytes bytes) const;

  /// Returns the allocation, mapping or variable that contains the address.
  std::optional<AddressRange> find(const void* address) const;

 private:
  struct Physical {
    Bytes bytes = 0;
    int references = 0;  ///< number of the handle's owners and mappings
  };
  struct Mapping {
    Bytes bytes = 0;
    Handle handle = 0;
  };

  std::optional<AddressRange> find_mapping(const void* address) const;
  char* take_addresses(Bytes bytes);
  void back(AddressRange range) const;
  void unback(AddressRange range) const;
  void drop_reference(Handle handle);
  bool in_reservation(const char* address, Bytes bytes) const;
  bool overlaps_mapping(const char* address, Bytes bytes) const;

  char* arena_ = nullptr;
  Bytes arena_bytes_ = 0;
  char* lowest_ = nullptr;  ///< of the addresses that were given out
  Bytes limit_bytes_ = 0;
  Bytes used_bytes_ = 0;
  bool is_real_ = false;
  std::map<char*, Bytes> allocations_;
  std::map<char*, Bytes> variables_;
  std::map<char*, Bytes> reservations_;
  std::map<char*, Mapping> mappings_;
  std::unordered_map<Handle, Physical> physical_;
  Handle next_handle_ = 1;
};

}  // namespace offprof
