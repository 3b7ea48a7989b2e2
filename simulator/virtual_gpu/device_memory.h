#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>

#include "simulator/virtual_gpu/address_range.h"
#include "traces/units.h"

namespace offprof {

/// The memory of the virtual GPU, in granules: what cudaMalloc gives out, and the virtual memory of the
/// driver's `cuMem*` family (address space, memory behind it, and the mapping of one to the other).
///
/// Addresses grow: what is given out later lies higher, and no address that was ever backed is given out
/// twice. They lie in address space that takes no memory, or, in a real device memory, gets some when it is
/// touched. Not thread-safe.
class DeviceMemory {
 public:
  /// What the driver of today's GPUs maps memory in (cuMemGetAllocationGranularity).
  static constexpr Bytes kGranule = 2 * kMiB;

  using Handle = std::uint64_t;

  /// Throws Error (environment): no address space.
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// What may be used in all.
  void set_limit(Bytes bytes) { limit_bytes_ = bytes; }
  Bytes limit_bytes() const { return limit_bytes_; }
  Bytes used_bytes() const { return used_bytes_; }

  /// Whether memory that is given out can be read and written, from now on.
  void set_real(bool is_real);

  /// cudaMalloc: rounded up to granules. nullptr: beyond the limit.
  void* allocate(Bytes bytes);
  /// cudaFree. nullopt: nothing was allocated at that address.
  std::optional<AddressRange> free(void* address);

  /// Room for a variable of a module, which lies in what the device's context takes: not counted, never
  /// freed.
  void* place_variable(Bytes bytes);

  /// cuMemAddressReserve; nullptr: no room, or not a multiple of the granule.
  void* reserve(Bytes bytes);
  /// cuMemAddressFree: what was reserved, as a whole and with nothing mapped in it.
  bool release_reservation(void* address, Bytes bytes);
  /// cuMemCreate; nullopt: beyond the limit, or not a multiple of the granule.
  std::optional<Handle> create(Bytes bytes);
  /// cuMemRelease: the memory is used until nothing maps it either.
  bool release(Handle handle);
  /// cuMemRetainAllocationHandle: the handle of what is mapped there, to be released once more.
  std::optional<Handle> retain(const void* address);
  /// cuMemMap of a whole handle. false: outside a reservation, over another mapping, or of another size.
  bool map(void* address, Bytes bytes, Handle handle);
  /// cuMemUnmap of whole mappings that fill the range.
  bool unmap(void* address, Bytes bytes);
  /// cuMemSetAccess: whether all of the range is mapped.
  bool is_mapped(const void* address, Bytes bytes) const;

  /// The allocation, the mapping or the variable that the address lies in.
  std::optional<AddressRange> find(const void* address) const;

 private:
  struct Physical {
    Bytes bytes = 0;
    int references = 0;  ///< of the handle's owners and of mappings
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
  char* next_ = nullptr;
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
