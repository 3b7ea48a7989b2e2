#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Numbers of the streams that memory of PyTorch's CUDA caching allocator belongs to: memory freed on one is
/// used again on that one only. Streams of the program other than the compute stream have numbers from
/// kFirstOtherStream, in the order in which they appear.
inline constexpr std::int32_t kComputeStream = 0;
inline constexpr std::int32_t kCopyOutStream = 1;  ///< copies to the host, which may gather first
inline constexpr std::int32_t kCopyInStream = 2;
inline constexpr std::int32_t kFirstOtherStream = 3;
inline constexpr std::int32_t kMostStreams = 1024;  ///< numbers are below it

/// A block of a segment, either allocated or free.
struct AllocatorBlock {
  Bytes bytes = 0;
  Bytes requested_bytes = 0;  ///< 0 if the block is free
  bool allocated = false;
  /// Index in Program::storages of the storage in the block; -1: a storage that no event names.
  std::int32_t storage = -1;

  bool operator==(const AllocatorBlock&) const = default;
};

/// Device memory that the allocator requested from CUDA in one piece. Its blocks are in address order.
struct AllocatorSegment {
  std::int32_t stream = kComputeStream;
  bool is_large = false;  ///< in the pool for blocks above 1 MiB
  bool is_expandable = false;
  std::vector<AllocatorBlock> blocks;
  /// Number of the address range that an expandable segment is mapped into; -1: not expandable. A segment is
  /// one mapped piece of its range. Other pieces of the range, of the same stream and pool, lie behind holes.
  /// Ranges are numbered from 0 as they appear.
  std::int32_t range = -1;
  Bytes range_offset = 0;  ///< distance of the first block from the start of the range

  bool operator==(const AllocatorSegment&) const = default;
};

/// State of PyTorch's CUDA caching allocator at the start of a step. Segments are in address order.
struct AllocatorState {
  std::string settings;  ///< in the syntax of PYTORCH_CUDA_ALLOC_CONF
  std::vector<AllocatorSegment> segments;

  bool operator==(const AllocatorState&) const = default;
};

/// Totals over an allocator's state.
struct AllocatorSum {
  std::size_t segments = 0;
  std::size_t free_blocks = 0;
  Bytes reserved = 0;
  Bytes free = 0;
  Bytes largest_free_block = 0;
};

AllocatorSum sum_up(const AllocatorState& state);

/// Peaks of a caching allocator: the bytes of the blocks that it handed out, counted in whole blocks, and the
/// bytes that it reserved from the device.
struct CacheUse {
  Bytes allocated_peak_bytes = 0;
  Bytes reserved_peak_bytes = 0;
};

/// GPU memory in use beside the memory that PyTorch's caching allocator reserved: the CUDA context, kernel
/// code, memory of libraries and of tracing. It includes other processes, because the driver counts the whole
/// device.
struct MemoryBesideAllocator {
  Bytes before_bytes = 0;  ///< at the start
  Bytes warm_bytes = 0;    ///< after warm-up
  Bytes end_bytes = 0;     ///< after the last step

  Bytes most_bytes() const { return std::max({before_bytes, warm_bytes, end_bytes, Bytes{0}}); }
  bool operator==(const MemoryBesideAllocator&) const = default;
};

}  // namespace offprof
