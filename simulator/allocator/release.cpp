#include <algorithm>

#include "simulator/allocator/caching_allocator.h"

namespace offprof {

Bytes CachingAllocator::on_device(Bytes bytes) {
  return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

bool CachingAllocator::device_has(Bytes bytes) const {
  return !memory_.capacity || device_used_ + on_device(bytes) <= *memory_.capacity;
}

bool CachingAllocator::may_get(Bytes bytes) const {
  return !allowed_bytes_ || counters_.reserved.current + bytes <= *allowed_bytes_;
}

Bytes CachingAllocator::reserve_addresses(Bytes bytes) {
  return lowest_address_ -= on_device(bytes);
}

// For segments that exist already, which are known in the order of their addresses.
Bytes CachingAllocator::reserve_addresses_above(Bytes bytes) {
  const Bytes address = end_address_;
  end_address_ += on_device(bytes);
  return address;
}

bool CachingAllocator::collects_garbage() const {
  return allowed_bytes_ && settings_.garbage_collection_threshold > 0;
}

// Frees whole large segments that are at least as old as the average, until the reserved bytes are below the
// threshold.
void CachingAllocator::collect_garbage() {
  const auto threshold =
      static_cast<Bytes>(settings_.garbage_collection_threshold * static_cast<double>(*allowed_bytes_));
  Bytes to_reclaim = counters_.reserved.current - threshold;
  std::vector<std::int32_t> candidates = to_reclaim > 0 ? collectable() : std::vector<std::int32_t>{};
  while (to_reclaim > 0 && !candidates.empty()) {
    std::int64_t total_age = 0;
    for (const std::int32_t block : candidates) total_age += age(block);
    const double mean_age = static_cast<double>(total_age) / static_cast<double>(candidates.size());
    std::erase_if(candidates, [&](std::int32_t block) {
      if (static_cast<double>(age(block)) < mean_age) return false;
      to_reclaim -= blocks_[block].bytes;
      release_segment(block);
      return true;
    });
  }
}

std::vector<std::int32_t> CachingAllocator::collectable() const {
  std::vector<std::int32_t> found;
  for (const StreamPool& pool : pools_[1].streams) {
    for (const FreeKey& key : pool.free) {
      if (is_whole_segment(key.block)) found.push_back(key.block);
    }
  }
  return found;
}

bool CachingAllocator::is_whole_segment(std::int32_t block) const {
  const Block& entry = blocks_[block];
  return entry.range == kNone && entry.previous == kNone && entry.next == kNone;
}

// Frees one block that is large enough, or as many of the largest as needed. Returns true if that was enough.
bool CachingAllocator::release_oversize(const Request& request) {
  if (settings_.max_split_bytes == kUnlimitedBytes) return false;
  const Bytes target = std::max(request.bytes, settings_.max_split_bytes);
  const FreeBlocks& free = stream_pool(request.is_large, request.stream).free;
  const auto enough = std::lower_bound(free.begin(), free.end(), FreeKey{target, kLeastAddress, kNone});
  if (enough == free.end()) return release_largest(free, target);
  if (!is_whole_segment(enough->block)) return false;  // part of an expandable segment
  release_segment(enough->block);
  return true;
}

bool CachingAllocator::release_largest(const FreeBlocks& free, Bytes target) {
  std::vector<std::int32_t> to_release;
  // NOLINTNEXTLINE(modernize-loop-convert): clang 14 has no reversed range
  for (auto key = free.rbegin(); key != free.rend(); ++key) {
    if (target <= 0 || key->bytes < settings_.max_split_bytes) break;
    if (!is_whole_segment(key->block)) continue;
    target -= key->bytes;
    to_release.push_back(key->block);
  }
  for (const std::int32_t block : to_release) release_segment(block);
  return target <= 0;
}

void CachingAllocator::release_all() {
  synchronize_events();
  release_pool(true);
  release_pool(false);
}

void CachingAllocator::release_pool(bool is_large) {
  std::vector<std::int32_t> to_release, to_unmap;
  for (const StreamPool& pool : pools_[is_large ? 1 : 0].streams) {
    for (const FreeKey& key : pool.free) {
      if (is_whole_segment(key.block)) to_release.push_back(key.block);
      if (blocks_[key.block].range != kNone) to_unmap.push_back(key.block);
    }
  }
  for (const std::int32_t block : to_release) release_segment(block);
  for (const std::int32_t block : to_unmap) unmap(block);
}

void CachingAllocator::release_segment(std::int32_t block) {
  const Bytes bytes = blocks_[block].bytes;
  erase_free(block);
  drop_block(block);
  device_used_ -= on_device(bytes);
  counters_.reserved.current -= bytes;
  --counters_.segments;
}

}  // namespace offprof
