#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "traces/units.h"

namespace offprof {

/// Serves every disk: no file system asks for more than a page.
inline constexpr std::size_t kDiskAlignment = 4096;

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kDiskAlignment}, std::nothrow);
  }
};

/// Memory that direct I/O takes as it is; other memory goes through a bounce buffer, at the price of a copy.
using AlignedBuffer = std::unique_ptr<std::byte[], AlignedDelete>;

/// Null where the machine has no memory for it.
inline AlignedBuffer make_aligned_buffer(Bytes bytes) {
  void* memory =
      ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kDiskAlignment}, std::nothrow);
  return AlignedBuffer(static_cast<std::byte*>(memory));
}

}  // namespace offprof
