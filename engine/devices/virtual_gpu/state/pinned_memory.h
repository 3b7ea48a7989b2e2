#pragma once

#include <map>
#include <optional>

#include "engine/devices/virtual_gpu/state/address_range.h"
#include "traces/base/units.h"

namespace offprof {

/// Pinned host memory: allocations of cudaHostAlloc, which take no memory until they are touched, and ranges
/// of other owners that were pinned by cudaHostRegister. Not thread-safe.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  Bytes pinned_bytes() const { return pinned_bytes_; }

  /// Allocates zeroed memory. Returns nullptr if the machine has no address space left.
  void* allocate(Bytes bytes);
  /// Frees an allocation. Returns nullopt if it was not allocated here.
  std::optional<AddressRange> free(void* address);

  /// Returns false if a part of the range is pinned already.
  bool register_range(void* address, Bytes bytes);
  /// Returns nullopt if the range is not registered.
  std::optional<AddressRange> unregister(void* address);

  /// Returns the pinned piece that contains the address.
  std::optional<AddressRange> find(const void* address) const;

 private:
  struct Piece {
    Bytes bytes = 0;
    Bytes mapped_bytes = 0;  ///< 0: the piece was registered
  };

  std::map<char*, Piece> pieces_;
  Bytes pinned_bytes_ = 0;
};

}  // namespace offprof
