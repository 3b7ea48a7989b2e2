#pragma once

#include <cstdint>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Receives the blocks that allocators hand out, for the stream race checker and the cost model.
class GpuBlocks {
 public:
  virtual ~GpuBlocks() = default;
  /// Records that a caching allocator has handed out a block for use on `stream` (a cudaStream_t), or has got
  /// it back.
  virtual void block_allocated(const void* block, Bytes bytes, void* stream) = 0;
  virtual void block_freed(const void* block) = 0;
  /// Records that the allocator is asked to free a block. If other streams use it, it records events in them;
  /// otherwise block_freed follows.
  virtual void free_requested() = 0;
  /// Returns the points (see StreamCommand) of these events; empty if none is noted.
  virtual std::vector<std::int32_t> take_free_points() = 0;
  /// Records the same for a piece of pinned host memory.
  virtual void host_block_allocated(const void* block, Bytes bytes) = 0;
  virtual void host_block_freed(const void* block) = 0;
};

}  // namespace offprof
