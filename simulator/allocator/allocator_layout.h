#pragma once

#include <ranges>
#include <string>
#include <vector>

#include "simulator/allocator/caching_allocator.h"

namespace offprof {

/// Returns one line per segment, such as `small 0: 512a 2096640`, those of high addresses first: new segments
/// have the lowest. For tests. The pool and the stream come
/// first, then the sizes of the blocks, with `a` for allocated blocks and `w` for blocks that wait for
/// events. The line of an expandable segment begins with its offset.
inline std::vector<std::string> layout(const std::vector<CachedSegment>& segments) {
  std::vector<std::string> lines;
  for (const CachedSegment& segment : segments | std::views::reverse) {
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
