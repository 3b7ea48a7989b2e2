#pragma once

#include <string>
#include <vector>

#include "simulator/caching_allocator/caching_allocator.h"

namespace offprof {

/// For tests: a line for each segment, `small 0: 512a 2096640`. The stream follows the pool, then the blocks'
/// sizes with `a` for allocated ones and `w` for those that wait for events; an expandable segment begins
/// with its offset.
inline std::vector<std::string> layout(const std::vector<CachedSegment>& segments) {
  std::vector<std::string> lines;
  for (const CachedSegment& segment : segments) {
    std::string line = segment.is_expandable ? "+" + std::to_string(segment.range_offset) + " " : "";
    line += (segment.is_large ? "large " : "small ") + std::to_string(segment.stream) + ":";
    for (const CachedBlock& block : segment.blocks) {
      line += " " + std::to_string(block.bytes) + (block.allocated ? "a" : block.active ? "w" : "");
    }
    lines.push_back(line);
  }
  return lines;
}

inline std::vector<std::string> layout(const CachingAllocator& allocator) {
  return layout(allocator.segments());
}

}  // namespace offprof
