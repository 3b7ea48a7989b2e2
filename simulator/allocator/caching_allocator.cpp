#include "simulator/allocator/caching_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "traces/base/check.h"

namespace offprof {

AllocatorOutOfMemory::AllocatorOutOfMemory(Bytes requested, Bytes allocated, Bytes reserved)
    : Error(ErrorKind::kEnvironment,
            fmt::format("device memory: no room for {} in addition to {} allocated and {} reserved",
                        format_bytes(requested), format_bytes(allocated), format_bytes(reserved - allocated)),
            "offload more, or use 'offprof tune' to find a policy"),
      requested_bytes(requested),
      allocated_bytes(allocated),
      reserved_bytes(reserved) {}

CachingAllocator::CachingAllocator(AllocatorSettings settings, DeviceLimits memory)
    : settings_(std::move(settings)), memory_(memory), allowed_bytes_(memory.allowed) {
  constexpr Bytes kTotalWhereUnknown = 1024 * kGiB;
  // More than any device has. It limits address ranges, so that all of them together have addresses.
  constexpr Bytes kMostTotal = 1024 * kTotalWhereUnknown;
  if (memory_.total == 0) memory_.total = memory_.capacity.value_or(kTotalWhereUnknown);
  memory_.total = std::min(memory_.total, kMostTotal);
  if (!allowed_bytes_ && settings_.per_process_memory_fraction < 1) {
    allowed_bytes_ =
        static_cast<Bytes>(settings_.per_process_memory_fraction * static_cast<double>(memory_.total));
  }
}

CachingAllocator::Handle CachingAllocator::allocate(Bytes bytes, Stream stream, std::int32_t storage) {
  OFFPROF_CHECK(bytes > 0 && stream >= 0);
  process_events();
  const Bytes rounded = settings_.rounded(bytes);
  const Request request{rounded, stream, rounded > kLargestSmallBytes};
  std::int32_t block = find_block(request);
  if (block == kNone) {
    throw AllocatorOutOfMemory(bytes, counters_.allocated.current, counters_.reserved.current);
  }
  if (should_split(block, rounded)) block = split(block, rounded);
  hand_out(block, bytes, storage);
  return block;
}

// PyTorch's order: the cache, the device, the device after oversize blocks were freed, the device after all
// cached blocks were freed.
std::int32_t CachingAllocator::find_block(const Request& request) {
  std::int32_t block = cached_block(request);
  if (block != kNone) return block;
  if (collects_garbage()) collect_garbage();
  block = new_segment(request);
  if (block == kNone && release_oversize(request)) block = new_segment(request);
  if (block != kNone) return block;
  release_all();
  ++counters_.retries;
  return new_segment(request);
}

std::int32_t CachingAllocator::cached_block(const Request& request) {
  if (collects_garbage()) ++pools_[request.is_large ? 1 : 0].searches;
  FreeBlocks& free = stream_pool(request.is_large, request.stream).free;
  FreeBlocks::const_iterator fit =
      std::lower_bound(free.begin(), free.end(), FreeKey{request.bytes, kLeastAddress, kNone});
  if (fit != free.end() && blocks_[fit->block].range != kNone) fit = best_expandable(free, fit);
  if (fit == free.end()) return kNone;
  const bool is_oversize = request.bytes >= settings_.max_split_bytes;
  if (!is_oversize && fit->bytes >= settings_.max_split_bytes) return kNone;
  if (is_oversize && fit->bytes >= request.bytes + settings_.max_non_split_rounding_bytes) return kNone;
  const std::int32_t block = fit->block;
  free.erase(fit);
  return block;
}

std::int32_t CachingAllocator::new_segment(const Request& request) {
  if (!may_get(settings_.segment_bytes(request.bytes))) return kNone;
  return settings_.expandable_segments ? expand(request) : cuda_malloc(request);
}

std::int32_t CachingAllocator::cuda_malloc(const Request& request) {
  const Bytes bytes = settings_.segment_bytes(request.bytes);
  if (!device_has(bytes)) return kNone;
  device_used_ += on_device(bytes);
  counters_.reserved.add(bytes);
  ++counters_.segments;
  return add_block({.address = reserve_addresses(bytes),
                    .bytes = bytes,
                    .stream = request.stream,
                    .is_large = request.is_large});
}

bool CachingAllocator::should_split(std::int32_t block, Bytes bytes) const {
  const Bytes rest = blocks_[block].bytes - bytes;
  if (!blocks_[block].is_large || settings_.expandable_segments) return rest >= kMinBlockBytes;
  return bytes < settings_.max_split_bytes && rest > kLargestSmallBytes;
}

std::int32_t CachingAllocator::split(std::int32_t block, Bytes bytes) {
  const std::int32_t front = cut_front(block, bytes);
  insert_free(block);
  return front;
}

void CachingAllocator::hand_out(std::int32_t block, Bytes requested, std::int32_t storage) {
  Block& entry = blocks_[block];
  entry.allocated = true;
  entry.requested_bytes = requested;
  entry.storage = storage;
  counters_.requested.add(requested);
  counters_.allocated.add(entry.bytes);
  counters_.active.add(entry.bytes);
}

void CachingAllocator::take_back(Block& entry) {
  OFFPROF_CHECK(entry.allocated);
  entry.allocated = false;
  entry.storage = -1;
  counters_.allocated.current -= entry.bytes;
}

void CachingAllocator::request_free(Handle block) {
  if (is_free_requested(block)) return;
  take_back(blocks_[block]);
  blocks_[block].pending_events = 1;
}

void CachingAllocator::free(Handle block) {
  Block& entry = blocks_[block];
  if (is_free_requested(block)) {
    entry.pending_events = 0;
    return make_free(block);
  }
  take_back(entry);
  if (entry.used_elsewhere) {
    record_events(block);
  } else {
    make_free(block);
  }
}

void CachingAllocator::make_free(std::int32_t block) {
  Block& entry = blocks_[block];
  counters_.active.current -= entry.bytes;
  counters_.requested.current -= entry.requested_bytes;
  entry.requested_bytes = 0;
  merge(block, entry.previous);
  merge(block, entry.next);
  insert_free(block);
}

bool CachingAllocator::is_idle(std::int32_t block) const {
  return block != kNone && !blocks_[block].allocated && blocks_[block].pending_events == 0;
}

// Merges the neighbour into `into` if it is free too, and either both or none are mapped.
void CachingAllocator::merge(std::int32_t into, std::int32_t neighbour) {
  if (!is_idle(neighbour) || blocks_[into].mapped != blocks_[neighbour].mapped) return;
  erase_free(neighbour);
  Block& entry = blocks_[into];
  const Block& swallowed = blocks_[neighbour];
  if (entry.previous == neighbour) {
    entry.address = swallowed.address;
    entry.previous = swallowed.previous;
    link(entry.previous, into);
  } else {
    entry.next = swallowed.next;
    link(into, entry.next);
  }
  entry.bytes += swallowed.bytes;
  drop_block(neighbour);
}

void CachingAllocator::record_stream(Handle block, Stream stream) {
  if (blocks_[block].stream == stream) return;
  std::vector<Stream>& streams = stream_uses_[block];
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
  blocks_[block].used_elsewhere = true;
}

void CachingAllocator::record_events(std::int32_t block) {
  const auto uses = stream_uses_.find(block);
  for (const Stream stream : uses->second) {
    if (events_ != nullptr) events_->record(next_event_, stream);
    pending_[stream].push_back({next_event_++, block});
    ++blocks_[block].pending_events;
  }
  stream_uses_.erase(uses);
  blocks_[block].used_elsewhere = false;
}

void CachingAllocator::pass_event(const PendingEvent& pending) {
  if (--blocks_[pending.block].pending_events == 0) make_free(pending.block);
}

// Events of one stream complete in order, so the first incomplete event ends the scan of its stream.
void CachingAllocator::process_events() {
  for (auto& [stream, events] : pending_) {
    while (!events.empty() && (events_ == nullptr || events_->is_complete(events.front().event))) {
      pass_event(events.front());
      events.pop_front();
    }
  }
}

void CachingAllocator::synchronize_events() {
  for (auto& [stream, events] : pending_) {
    for (const PendingEvent& pending : events) pass_event(pending);
  }
  pending_.clear();
}

void CachingAllocator::empty_cache() {
  release_all();
}

void CachingAllocator::reset_peaks() {
  for (PeakedBytes* sum :
       {&counters_.requested, &counters_.allocated, &counters_.active, &counters_.reserved}) {
    sum->peak = sum->current;
  }
}

}  // namespace offprof
