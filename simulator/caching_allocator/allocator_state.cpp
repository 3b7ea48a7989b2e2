#include <algorithm>
#include <numeric>

#include "simulator/caching_allocator/caching_allocator.h"
#include "traces/check.h"

namespace offprof {
namespace {

Bytes bytes_of(const AllocatorSegment& segment) {
  return std::accumulate(segment.blocks.begin(), segment.blocks.end(), Bytes{0},
                         [](Bytes sum, const AllocatorBlock& block) { return sum + block.bytes; });
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorState& state, DeviceLimits memory)
    : CachingAllocator(parse_allocator_settings(state.settings), memory) {
  for (const AllocatorSegment& segment : state.segments) load(segment);
  reset_peaks();
}

void CachingAllocator::load(const AllocatorSegment& segment) {
  std::int32_t rest = segment.is_expandable ? map_anew(segment) : malloc_anew(segment);
  for (const AllocatorBlock& block : segment.blocks) {
    const bool is_last = block.bytes == blocks_[rest].bytes;
    const std::int32_t loaded = is_last ? rest : cut_front(rest, block.bytes);
    if (block.allocated) {
      hand_out(loaded, block.requested_bytes, block.storage);
    } else {
      insert_free(loaded);
    }
  }
}

std::int32_t CachingAllocator::malloc_anew(const AllocatorSegment& segment) {
  const Bytes bytes = bytes_of(segment);
  device_used_ += on_device(bytes);
  counters_.reserved.add(bytes);
  ++counters_.segments;
  return add_block({.address = reserve_addresses(bytes),
                    .bytes = bytes,
                    .stream = segment.stream,
                    .is_large = segment.is_large});
}

// Maps the segment in the range that was reserved last, if that is of its stream and pool and has not been
// mapped so far; else in a new range. The block is not entered as free.
std::int32_t CachingAllocator::map_anew(const AllocatorSegment& segment) {
  const Bytes bytes = bytes_of(segment);
  UnmappedBlocks& unmapped = stream_pool(segment.is_large, segment.stream).unmapped;
  const auto is_behind = [&](std::int32_t block) {
    const Block& entry = blocks_[block];
    return static_cast<std::size_t>(entry.range) + 1 == ranges_.size() &&
           entry.address <= ranges_.back().address + segment.range_offset;
  };
  std::int32_t block = unmapped.empty() || !is_behind(unmapped.rbegin()->second)
                           ? reserve_range(segment.is_large, segment.stream)
                           : unmapped.rbegin()->second;
  erase_free(block);
  const Bytes hole = ranges_.back().address + segment.range_offset - blocks_[block].address;
  if (hole > 0) insert_free(cut_front(block, hole));
  const std::int32_t front = cut_front(block, bytes);
  insert_free(block);
  blocks_[front].mapped = true;
  device_used_ += bytes;
  counters_.reserved.add(bytes);
  return front;
}

std::vector<CachedSegment> CachingAllocator::segments() const {
  std::vector<bool> is_unused(blocks_.size());
  for (const std::int32_t block : unused_blocks_) is_unused[block] = true;
  std::vector<CachedSegment> found;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (is_unused[i] || !block.mapped) continue;
    if (block.previous != kNone && blocks_[block.previous].mapped) continue;
    found.push_back(segment_from(static_cast<std::int32_t>(i)));
  }
  std::sort(found.begin(), found.end(),
            [](const CachedSegment& a, const CachedSegment& b) { return a.address < b.address; });
  return found;
}

CachedSegment CachingAllocator::segment_from(std::int32_t head) const {
  const Block& first = blocks_[head];
  CachedSegment segment;
  segment.address = first.address;
  segment.stream = first.stream;
  segment.is_large = first.is_large;
  segment.is_expandable = first.range != kNone;
  if (segment.is_expandable) segment.range_offset = first.address - ranges_[first.range].address;
  for (std::int32_t i = head; i != kNone && blocks_[i].mapped; i = blocks_[i].next) {
    const Block& block = blocks_[i];
    segment.blocks.push_back({.bytes = block.bytes,
                              .requested_bytes = block.requested_bytes,
                              .allocated = block.allocated,
                              .active = !is_idle(i),
                              .storage = block.storage});
  }
  return segment;
}

AllocatorState CachingAllocator::state() const {
  AllocatorState state;
  state.settings = settings_.text;
  for (const CachedSegment& from : segments()) {
    AllocatorSegment segment;
    segment.stream = from.stream;
    segment.is_large = from.is_large;
    segment.is_expandable = from.is_expandable;
    segment.range_offset = from.range_offset;
    for (const CachedBlock& block : from.blocks) {
      segment.blocks.push_back({block.bytes, block.requested_bytes, block.active, block.storage});
    }
    state.segments.push_back(std::move(segment));
  }
  return state;
}

std::map<std::int32_t, CachingAllocator::Handle> CachingAllocator::blocks_by_storage() const {
  std::map<std::int32_t, Handle> found;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].allocated && blocks_[i].storage >= 0) {
      found.emplace(blocks_[i].storage, static_cast<Handle>(i));
    }
  }
  return found;
}

}  // namespace offprof
