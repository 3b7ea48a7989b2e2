#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// A piece of a segment: handed out, or free.
struct AllocatorBlock {
  Bytes bytes = 0;
  Bytes requested_bytes = 0;  ///< 0 where it is free
  bool allocated = false;
  std::int32_t storage = -1;  ///< index in Program::storages of what it holds; -1: a storage no event names

  bool operator==(const AllocatorBlock&) const = default;
};

/// Device memory that the allocator has got from CUDA in one piece; its blocks in the order of their
/// addresses.
struct AllocatorSegment {
  std::int32_t stream = 0;  ///< 0: the compute stream; others counted as they appear
  bool is_large = false;    ///< of the pool for blocks above 1 MiB
  bool is_expandable = false;
  std::vector<AllocatorBlock> blocks;
  /// Expandable: it is one mapped piece of an address range, and others of the range, of the same stream and
  /// pool, lie behind holes. Ranges are counted from 0 as they appear; -1: not expandable.
  std::int32_t range = -1;
  Bytes range_offset = 0;  ///< of its first block, from the begin of the range

  bool operator==(const AllocatorSegment&) const = default;
};

/// What PyTorch's CUDA caching allocator holds when a step begins: segments in the order of their addresses.
struct AllocatorState {
  std::string settings;  ///< as in PYTORCH_CUDA_ALLOC_CONF
  std::vector<AllocatorSegment> segments;

  bool operator==(const AllocatorState&) const = default;
};

/// What an allocator's state comes to.
struct AllocatorSum {
  std::size_t segments = 0;
  std::size_t free_blocks = 0;
  Bytes reserved = 0;
  Bytes free = 0;
  Bytes largest_free_block = 0;
};

AllocatorSum sum_up(const AllocatorState& state);

/// The most that the allocator had handed out, in whole blocks, and had taken from the device.
struct CacheUse {
  Bytes allocated_peak_bytes = 0;
  Bytes reserved_peak_bytes = 0;
};

/// What is used of a GPU's memory beside what PyTorch's caching allocator reserved: CUDA's context, the code
/// of kernels, what libraries and tracing take for themselves; and other processes, since the driver counts
/// the whole device.
struct MemoryBesideAllocator {
  Bytes before_bytes = 0;  ///< before the first allocation
  Bytes warm_bytes = 0;    ///< after warm-up
  Bytes end_bytes = 0;     ///< after the last step

  Bytes most_bytes() const { return std::max({before_bytes, warm_bytes, end_bytes, Bytes{0}}); }
  bool operator==(const MemoryBesideAllocator&) const = default;
};

}  // namespace offprof
