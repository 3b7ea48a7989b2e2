#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "traces/units.h"

namespace offprof {

/// Sizes that PyTorch's CUDA caching allocator goes by (c10/core/AllocatorConfig.h of LibTorch 2.11).
inline constexpr Bytes kMinBlockBytes = 512;           ///< every size is rounded up to a multiple of it
inline constexpr Bytes kLargestSmallBytes = kMiB;      ///< larger blocks are of the large pool
inline constexpr Bytes kSmallSegmentBytes = 2 * kMiB;  ///< what the small pool gets from CUDA at a time
inline constexpr Bytes kSmallestOwnSegmentBytes =
    10 * kMiB;  ///< from here on a request gets a segment to its measure
inline constexpr Bytes kSegmentRoundingBytes = 2 * kMiB;  ///< of such a segment
/// What CUDA gives memory out in (cuMemGetAllocationGranularity of today's GPUs).
inline constexpr Bytes kGranuleBytes = 2 * kMiB;
inline constexpr Bytes kUnlimitedBytes = std::numeric_limits<Bytes>::max();

/// What PYTORCH_CUDA_ALLOC_CONF says, as far as it changes device memory; the defaults are PyTorch's.
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

  /// The size of the block that a request of `requested` bytes gets, if the block can be cut to measure.
  Bytes rounded(Bytes requested) const;
  /// What is asked of CUDA where no cached block serves a block of `rounded` bytes.
  Bytes segment_bytes(Bytes rounded) const;
};

/// Reads the syntax of PYTORCH_CUDA_ALLOC_CONF, `key:value,key:[a:b,c:d]`; "" gives the defaults. Settings of
/// pinned memory are ignored. Throws Error (input): a key that PyTorch 2.11 does not know, a value that it
/// refuses, or a setting that moves memory in ways that are not modelled (`backend:cudaMallocAsync`).
AllocatorSettings parse_allocator_settings(const std::string& text);

}  // namespace offprof
