#include "traces/model/allocator_state.h"

#include <algorithm>

namespace offprof {

AllocatorSum sum_up(const AllocatorState& state) {
  AllocatorSum sum{.segments = state.segments.size()};
  for (const AllocatorSegment& segment : state.segments) {
    for (const AllocatorBlock& block : segment.blocks) {
      sum.reserved += block.bytes;
      if (block.allocated) continue;
      ++sum.free_blocks;
      sum.free += block.bytes;
      sum.largest_free_block = std::max(sum.largest_free_block, block.bytes);
    }
  }
  return sum;
}

}  // namespace offprof
