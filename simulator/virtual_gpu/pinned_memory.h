#pragma once

#include <map>
#include <optional>

#include "simulator/virtual_gpu/address_range.h"
#include "traces/units.h"

namespace offprof {

/// Pinned host memory: cudaHostAlloc, which takes no memory until it is touched, and cudaHostRegister of what
/// somebody else owns. Not thread-safe.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  Bytes pinned_bytes() const { return pinned_bytes_; }

  /// Reads as zeros. nullptr: the machine has no address space left.
  void* allocate(Bytes bytes);
  /// nullopt: not allocated here.
  std::optional<AddressRange> free(void* address);

  /// false: part of it is pinned already.
  bool register_range(void* address, Bytes bytes);
  /// nullopt: not registered.
  std::optional<AddressRange> unregister(void* address);

  /// The pinned piece that the address lies in.
  std::optional<AddressRange> find(const void* address) const;

 private:
  struct Piece {
    Bytes bytes = 0;
    Bytes mapped_bytes = 0;  ///< 0: registered
  };

  std::map<char*, Piece> pieces_;
  Bytes pinned_bytes_ = 0;
};

}  // namespace offprof
