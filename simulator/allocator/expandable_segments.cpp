#include <algorithm>
#include <iterator>

#include "simulator/allocator/caching_allocator.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

Bytes round_down(Bytes bytes, Bytes granule) {
  return bytes / granule * granule;
}
}  // namespace

// Returns the size that a free block can grow to.
Bytes CachingAllocator::expandable_bytes(std::int32_t block) const {
  const Block& entry = blocks_[block];
  const bool can_grow = entry.next != kNone && !blocks_[entry.next].mapped;
  return entry.bytes + (can_grow ? blocks_[entry.next].bytes : 0);
}

// `fit` lies in an expandable segment. Of the blocks after it, one that can grow to a smaller size is
// preferred. If expandable segments have since been switched off, the next block outside of them is taken.
CachingAllocator::FreeBlocks::const_iterator CachingAllocator::best_expandable(
    const FreeBlocks& free, FreeBlocks::const_iterator fit) const {
  const auto is_expandable = [&](FreeBlocks::const_iterator key) {
    return blocks_[key->block].range != kNone;
  };
  if (!settings_.expandable_segments) {
    while (fit != free.end() && is_expandable(fit)) ++fit;
    return fit;
  }
  for (auto next = std::next(fit); next != free.end() && is_expandable(fit); ++next) {
    if (expandable_bytes(next->block) >= expandable_bytes(fit->block)) break;
    fit = next;
  }
  return fit;
}

// Maps memory at the lowest addresses where the request fits, including a free block before them. If memory
// runs out on the way, the part already mapped stays mapped.
std::int32_t CachingAllocator::expand(const Request& request) {
  std::int32_t block = find_room(request);
  const auto map_up_to = [&](std::int32_t unmapped, Bytes bytes) {
    return map(unmapped, std::min(blocks_[unmapped].bytes, bytes));
  };
  if (!blocks_[block].mapped && !map_up_to(block, request.bytes)) return kNone;
  while (blocks_[block].bytes < request.bytes) {
    const std::int32_t next = blocks_[block].next;
    if (!map_up_to(next, request.bytes - blocks_[block].bytes)) return kNone;
    block = next;  // it has merged with the block before it
  }
  erase_free(block);
  return block;
}

std::int32_t CachingAllocator::find_room(const Request& request) {
  for (const auto& [address, unmapped] : stream_pool(request.is_large, request.stream).unmapped) {
    const std::int32_t previous = blocks_[unmapped].previous;
    const std::int32_t first = is_idle(previous) ? previous : unmapped;
    if (has_room(first, request.bytes)) return first;
  }
  return reserve_range(request.is_large, request.stream);
}

bool CachingAllocator::has_room(std::int32_t block, Bytes bytes) const {
  for (; bytes > 0 && is_idle(block); block = blocks_[block].next) bytes -= blocks_[block].bytes;
  return bytes <= 0;
}

// Somewhat larger than the device, so that memory can be mapped again behind holes.
Bytes CachingAllocator::range_bytes(bool is_large, Bytes least) const {
  return round_up(std::max(memory_.total + memory_.total / 8, least), granule(is_large));
}

std::int32_t CachingAllocator::reserve_range(bool is_large, Stream stream) {
  const Bytes bytes = range_bytes(is_large, /*least=*/0);
  return add_range(is_large, stream, reserve_addresses(bytes), bytes);
}

std::int32_t CachingAllocator::add_range(bool is_large, Stream stream, Bytes address, Bytes bytes) {
  ranges_.push_back({address, granule(is_large), bytes});
  const std::int32_t block = add_block({.address = address,
                                        .bytes = bytes,
                                        .range = static_cast<std::int32_t>(ranges_.size() - 1),
                                        .stream = stream,
                                        .is_large = is_large,
                                        .mapped = false});
  insert_free(block);
  return block;
}

// Maps the front of an unmapped block, in granules. Returns false, without any change, if the device is full.
bool CachingAllocator::map(std::int32_t block, Bytes bytes) {
  const Bytes mapped = round_up(bytes, ranges_[blocks_[block].range].granule);
  if (!device_has(mapped)) return false;
  erase_free(block);
  if (mapped < blocks_[block].bytes) {
    // The block itself becomes the mapped part.
    const std::int32_t front = cut_front(block, mapped);
    std::swap(blocks_[front], blocks_[block]);
    link(blocks_[block].previous, block);
    link(block, front);
    link(front, blocks_[front].next);
    insert_free(front);
  }
  blocks_[block].mapped = true;
  merge(block, blocks_[block].previous);
  merge(block, blocks_[block].next);
  insert_free(block);
  device_used_ += mapped;
  counters_.reserved.add(mapped);
  return true;
}

// Unmaps the whole granules in a free block; the parts at its ends stay free.
void CachingAllocator::unmap(std::int32_t block) {
  const Range& range = ranges_[blocks_[block].range];
  const Bytes offset = blocks_[block].address - range.address;
  const Bytes begin = round_up(offset, range.granule);
  const Bytes end = round_down(offset + blocks_[block].bytes, range.granule);
  if (begin >= end) return;
  erase_free(block);
  if (begin > offset) insert_free(cut_front(block, begin - offset));
  if (end - begin < blocks_[block].bytes) {
    const std::int32_t granules = cut_front(block, end - begin);
    insert_free(block);
    block = granules;
  }
  blocks_[block].mapped = false;
  merge(block, blocks_[block].previous);
  merge(block, blocks_[block].next);
  device_used_ -= end - begin;
  counters_.reserved.current -= end - begin;
  if (blocks_[block].previous == kNone && blocks_[block].next == kNone) {
    drop_block(block);  // together with the range, whose addresses are not reused
  } else {
    insert_free(block);
  }
}

}  // namespace offprof
