#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "traces/base/units.h"

namespace offprof {

/// Alignment that suits every disk: no file system asks for more than a page.
inline constexpr std::size_t kDiskAlignment = 4096;

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete (memory, std::align_val_t{kDiskAlignment}, std::nothrow);
  }
};

/// Memory that direct I/O can use without a copy. Other memory needs a copy through a bounce buffer.
using AlignedBuffer = std::unique_ptr<std::byte[], AlignedDelete>;

/// Returns null if the machine has no memory left.
inline AlignedBuffer make_aligned_buffer(Bytes bytes) {
  void* memory =
      ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{kDiskAlignment}, std::nothrow);
  return AlignedBuffer(static_cast<std::byte*>(memory));
}

}  // namespace offprof
