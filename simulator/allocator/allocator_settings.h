#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "traces/base/units.h"

namespace offprof {

/// Sizes in PyTorch's CUDA caching allocator (c10/core/AllocatorConfig.h of LibTorch 2.11 to 2.15).
inline constexpr Bytes kMinBlockBytes = 512;           ///< every size is rounded up to a multiple of it
inline constexpr Bytes kLargestSmallBytes = kMiB;      ///< larger blocks belong to the large pool
inline constexpr Bytes kSmallSegmentBytes = 2 * kMiB;  ///< allocated from CUDA at a time for the small pool
/// From this size on a request gets a segment of its own rounded size.
inline constexpr Bytes kSmallestOwnSegmentBytes = 10 * kMiB;
inline constexpr Bytes kSegmentRoundingBytes = 2 * kMiB;  ///< the size of such a segment is a multiple of it
/// Granularity of CUDA's device memory (cuMemGetAllocationGranularity of today's GPUs).
inline constexpr Bytes kGranuleBytes = 2 * kMiB;
inline constexpr Bytes kUnlimitedBytes = std::numeric_limits<Bytes>::max();

/// Contents of PYTORCH_CUDA_ALLOC_CONF, as far as they affect device memory; the defaults are PyTorch's.
struct AllocatorSettings {
  std::string text;  ///< as it was given
  Bytes large_segment_bytes = 20 * kMiB;
  Bytes max_split_bytes = kUnlimitedBytes;  ///< blocks as large or larger are never split
  Bytes max_non_split_rounding_bytes = 20 * kMiB;
  /// By size interval: 1 MiB and less, up to 2 MiB, 4 MiB, ... ; 0 and 1: round to kMinBlockBytes.
  std::array<Bytes, 16> roundup_power2_divisions{};
  double garbage_collection_threshold = 0;  ///< 0: no garbage collection
  double per_process_memory_fraction = 1;   ///< of the device's total memory; 1: no limit
  bool expandable_segments = false;

  /// Returns the size of the block for a request of `requested` bytes, if a block can be cut to that size.
  Bytes rounded(Bytes requested) const;
  /// Returns the bytes to allocate from CUDA if no cached block serves a block of `rounded` bytes.
  Bytes segment_bytes(Bytes rounded) const;
};

/// Parses the syntax of PYTORCH_CUDA_ALLOC_CONF, `key:value,key:[a:b,c:d]`; "" gives the defaults. Settings
/// of pinned memory are ignored. Throws Error (input) for a key that no PyTorch from 2.11 to 2.15 knows, for
/// a value that it rejects, and for a setting that allocates memory in ways that are not modelled
/// (`backend:cudaMallocAsync`, `throw_on_cudamalloc_oom:True`, `expandable_segments_reserve`). A PyTorch
/// rejects the keys of later versions itself.
AllocatorSettings parse_allocator_settings(const std::string& text);

}  // namespace offprof
