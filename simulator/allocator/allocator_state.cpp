#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "simulator/allocator/caching_allocator.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

Bytes bytes_of(const AllocatorSegment& segment) {
  return std::accumulate(segment.blocks.begin(), segment.blocks.end(), Bytes{0},
                         [](Bytes sum, const AllocatorBlock& block) { return sum + block.bytes; });
}

// Returns the end of the mapped memory in each address range.
std::vector<Bytes> range_ends(const AllocatorState& state) {
  std::vector<Bytes> ends;
  for (const AllocatorSegment& segment : state.segments) {
    if (!segment.is_expandable) continue;
    const auto range = static_cast<std::size_t>(segment.range);
    OFFPROF_CHECK(range <= ends.size());
    ends.resize(std::max(ends.size(), range + 1));
    ends[range] = segment.range_offset + bytes_of(segment);
  }
  return ends;
}

void check_granules(const AllocatorSegment& segment, Bytes granule) {
  if (segment.range_offset % granule == 0 && bytes_of(segment) % granule == 0) return;
  throw input_error(fmt::format("an allocator state maps {} B at {} of an address range, in which memory "
                                "is mapped {} B at a time",
                                bytes_of(segment), segment.range_offset, granule),
                    "Record the trace again.");
}

}  // namespace

CachingAllocator::CachingAllocator(const AllocatorState& state, DeviceLimits memory)
    : CachingAllocator(parse_allocator_settings(state.settings), memory) {
  const std::vector<Bytes> ends = range_ends(state);
  for (const AllocatorSegment& segment : state.segments) load(segment, ends);
  reset_peaks();
}

void CachingAllocator::load(const AllocatorSegment& segment, const std::vector<Bytes>& range_ends) {
  std::int32_t rest = segment.is_expandable ? map_anew(segment, range_ends) : malloc_anew(segment);
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
  return add_block({.address = reserve_addresses_above(bytes),
                    .bytes = bytes,
                    .stream = segment.stream,
                    .is_large = segment.is_large});
}

// Maps the segment in the most recently reserved address range, or in a new one. The block is not inserted as
// free.
std::int32_t CachingAllocator::map_anew(const AllocatorSegment& segment,
                                        const std::vector<Bytes>& range_ends) {
  const Bytes bytes = bytes_of(segment);
  check_granules(segment, granule(segment.is_large));
  const auto range = static_cast<std::size_t>(segment.range);
  std::int32_t block = kNone;
  if (range == ranges_.size()) {
    const Bytes reserved = range_bytes(segment.is_large, range_ends[range]);
    block = add_range(segment.is_large, segment.stream, reserve_addresses_above(reserved), reserved);
  } else {
    block = stream_pool(segment.is_large, segment.stream).unmapped.rbegin()->second;
  }
  erase_free(block);
  const Bytes hole = ranges_[range].address + segment.range_offset - blocks_[block].address;
  if (hole > 0) insert_free(cut_front(block, hole));
  if (bytes < blocks_[block].bytes) {
    const std::int32_t front = cut_front(block, bytes);
    insert_free(block);
    block = front;
  }
  blocks_[block].mapped = true;
  device_used_ += bytes;
  counters_.reserved.add(bytes);
  return block;
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
  std::int32_t range = -1;
  Bytes range_address = -1;
  for (const CachedSegment& from : segments()) {
    AllocatorSegment segment;
    segment.stream = from.stream;
    segment.is_large = from.is_large;
    segment.is_expandable = from.is_expandable;
    segment.range_offset = from.range_offset;
    if (from.is_expandable && from.address - from.range_offset != range_address) {
      range_address = from.address - from.range_offset;
      ++range;
    }
    if (from.is_expandable) segment.range = range;
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
