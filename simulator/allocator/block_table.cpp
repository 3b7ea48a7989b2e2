#include <algorithm>

#include "simulator/allocator/caching_allocator.h"
#include "traces/base/check.h"

namespace offprof {

std::int32_t CachingAllocator::add_block(const Block& block) {
  if (unused_blocks_.empty()) {
    blocks_.push_back(block);
    return static_cast<std::int32_t>(blocks_.size() - 1);
  }
  const std::int32_t index = unused_blocks_.back();
  unused_blocks_.pop_back();
  blocks_[index] = block;
  return index;
}

void CachingAllocator::drop_block(std::int32_t block) {
  unused_blocks_.push_back(block);
}

// A new block takes the front of `block`, which keeps the rest. Neither is inserted into a free list.
std::int32_t CachingAllocator::cut_front(std::int32_t block, Bytes bytes) {
  OFFPROF_CHECK(bytes > 0 && bytes < blocks_[block].bytes);
  const Block& whole = blocks_[block];
  const std::int32_t front = add_block({.address = whole.address,
                                        .bytes = bytes,
                                        .range = whole.range,
                                        .stream = whole.stream,
                                        .is_large = whole.is_large,
                                        .mapped = whole.mapped});
  link(blocks_[block].previous, front);
  link(front, block);
  blocks_[block].address += bytes;
  blocks_[block].bytes -= bytes;
  return front;
}

void CachingAllocator::link(std::int32_t previous, std::int32_t next) {
  if (previous != kNone) blocks_[previous].next = next;
  if (next != kNone) blocks_[next].previous = previous;
}

CachingAllocator::StreamPool& CachingAllocator::stream_pool(bool is_large, Stream stream) {
  std::vector<StreamPool>& streams = pools_[is_large ? 1 : 0].streams;
  if (static_cast<std::size_t>(stream) >= streams.size()) streams.resize(stream + 1);
  return streams[stream];
}

void CachingAllocator::insert_free(std::int32_t block) {
  Block& entry = blocks_[block];
  entry.age_base = pools_[entry.is_large ? 1 : 0].searches;
  if (entry.mapped) {
    const FreeKey key = {entry.bytes, entry.address, block};
    FreeBlocks& free = pool_of(block).free;
    free.insert(std::lower_bound(free.begin(), free.end(), key), key);
  } else {
    pool_of(block).unmapped.emplace(entry.address, block);
  }
}

void CachingAllocator::erase_free(std::int32_t block) {
  const Block& entry = blocks_[block];
  if (entry.mapped) {
    FreeBlocks& free = pool_of(block).free;
    const auto found = std::lower_bound(free.begin(), free.end(), FreeKey{entry.bytes, entry.address, block});
    OFFPROF_CHECK(found != free.end() && found->block == block);
    free.erase(found);
  } else {
    pool_of(block).unmapped.erase(entry.address);
  }
}

}  // namespace offprof
