#pragma once

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
  /// Records the same for a piece of pinned host memory.
  virtual void host_block_allocated(const void* block, Bytes bytes) = 0;
  virtual void host_block_freed(const void* block) = 0;
};

}  // namespace offprof
