#include "engine/devices/virtual_gpu/races/stream_races.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/devices/virtual_gpu/races/copy_accesses.h"
#include "engine/devices/virtual_gpu/races/stream_clocks.h"
#include "engine/devices/virtual_gpu/races/stream_sites.h"

namespace offprof {
namespace {

/// Fewest accesses at which it is worth walking all of them to forget some.
constexpr std::size_t kFewAccesses = 256;

AddressSpan span_of(const void* address, Bytes bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {begin, begin + static_cast<std::uintptr_t>(bytes)};
}

SiteKind copy_kind(MemoryPlace to, MemoryPlace from) {
  if (from == MemoryPlace::kDevice) {
    return to == MemoryPlace::kDevice ? SiteKind::kD2dCopy : SiteKind::kD2hCopy;
  }
  return to == MemoryPlace::kDevice ? SiteKind::kH2dCopy : SiteKind::kH2hCopy;
}

/// Returns the element that contains the start of `range`. The map's keys are start addresses, and elements
/// do not overlap.
template <typename Thing>
Thing* containing(std::map<std::uintptr_t, Thing>& things, AddressSpan range) {
  auto after = things.upper_bound(range.begin);
  if (after == things.begin()) return nullptr;
  Thing& candidate = std::prev(after)->second;
  return candidate.range.overlaps(range) ? &candidate : nullptr;
}

template <typename Thing>
void erase_overlapping(std::map<std::uintptr_t, Thing>& things, AddressSpan range) {
  auto at = things.upper_bound(range.begin);
  if (at != things.begin()) --at;
  while (at != things.end() && at->first < range.end) {
    at = at->second.range.overlaps(range) ? things.erase(at) : std::next(at);
  }
}

}  // namespace

class StreamRace::State {
 public:
  using Index = StreamClocks::Index;

  /// A kernel launch.
  struct Launch {
    StreamPoint point;
    StreamSite site;
  };

  /// A block that a caching allocator has handed out.
  struct Block {
    AddressSpan range;
    Index stream = 0;
    std::uint64_t tick = 0;        ///< tick of its stream when it was handed out
    std::optional<Launch> before;  ///< the last kernel launched on its stream until then
    bool is_touched = false;       ///< a copy or a memset has accessed it
  };

  /// A copy or a memset that is being enqueued.
  struct Operation {
    Index stream = 0;
    StreamPoint point;
    StreamSite site;
  };

  struct Event {
    StreamSite created, recorded;
    std::optional<StreamClocks::Record> record;
  };

  /// One hand-out of a piece of pinned memory.
  struct Piece {
    AddressSpan range;
    std::uint64_t number = 0;
  };

  StreamSite site(SiteKind kind, Bytes bytes = 0) const {
    return {kind, StreamSite::kNoStream, nullptr, op, bytes};
  }
  StreamSite site_on(Index stream, SiteKind kind, Bytes bytes = 0) const {
    return {kind, static_cast<std::int32_t>(stream), nullptr, op, bytes};
  }

  Operation enqueue(StreamId stream, SiteKind kind, Bytes bytes);
  std::optional<Launch>& last_launch(Index stream);
  void access(const Operation& operation, CopyEnd end, Bytes bytes, bool writes);
  void check_block(const Operation& operation, AddressSpan range, bool writes);
  void check_copies(const Operation& operation, const CopyAccess& access);
  void check_touching(AddressSpan range, const VectorClock& order, HazardKind kind, const StreamSite& second);
  void end_of_memory(AddressSpan range, HazardKind kind, const StreamSite& second);
  void forget_some();
  Event* recorded(EventId event, const StreamSite& second);

  TextPool texts;
  HazardLog log;
  StreamClocks clocks;
  CopyAccesses accesses;
  const std::string* op = nullptr;
  std::map<std::uintptr_t, Block> blocks;
  std::map<std::uintptr_t, Piece> pieces;
  std::uint64_t last_piece = 0;
  std::vector<std::optional<Launch>> launches;  ///< the last launch of each stream
  std::unordered_map<EventId, Event> events;
  std::size_t forget_at = kFewAccesses;
};

auto StreamRace::State::enqueue(StreamId stream, SiteKind kind, Bytes bytes) -> Operation {
  const Index index = clocks.index(stream);
  return {index, clocks.enqueue(index), site_on(index, kind, bytes)};
}

auto StreamRace::State::last_launch(Index stream) -> std::optional<Launch>& {
  if (launches.size() <= stream) launches.resize(stream + 1);
  return launches[stream];
}

void StreamRace::State::access(const Operation& operation, CopyEnd end, Bytes bytes, bool writes) {
  if (end.place == MemoryPlace::kPageable) return;
  CopyAccess access{span_of(end.address, bytes), writes, operation.point, operation.site};
  if (end.place == MemoryPlace::kDevice) {
    check_block(operation, access.range, writes);
  } else if (const Piece* piece = containing(pieces, access.range)) {
    access.piece = piece->number;
  }
  check_copies(operation, access);
  accesses.add(access);
  if (accesses.size() >= forget_at) forget_some();
}

void StreamRace::State::check_block(const Operation& operation, AddressSpan range, bool writes) {
  Block* block = containing(blocks, range);
  if (block == nullptr) return;
  const VectorClock& order = clocks.order(operation.stream);
  const std::optional<Launch>& last = last_launch(block->stream);
  const HazardKind kind = writes ? HazardKind::kWritesWhatMayBeUsed : HazardKind::kReadsWhatMayBeWritten;
  const bool is_used = last && last->point.tick > block->tick && (!writes || block->is_touched);
  if (is_used && !order.covers(last->point)) {
    log.add(kind, last->site, operation.site);
  } else if (writes && block->before && !order.covers(block->before->point)) {
    log.add(kind, block->before->site, operation.site);
  }
  block->is_touched = true;
}

void StreamRace::State::check_copies(const Operation& operation, const CopyAccess& access) {
  const VectorClock& order = clocks.order(operation.stream);
  accesses.filter(access.range, [&](const CopyAccess& earlier) {
    const bool is_ordered = order.covers(earlier.point);
    if (!is_ordered && (earlier.writes || access.writes)) {
      const bool is_reuse = access.piece != 0 && earlier.piece != access.piece;
      log.add(is_reuse ? HazardKind::kPinnedReusedUnderCopy : HazardKind::kCopiesOverlap, earlier.site,
              access.site);
    }
    // An operation that is not ordered after the earlier access will not be ordered after this one either.
    const bool stands_for_it = access.range.contains(earlier.range) && (access.writes || !earlier.writes);
    return !(is_ordered && stands_for_it);
  });
}

void StreamRace::State::check_touching(AddressSpan range, const VectorClock& order, HazardKind kind,
                                       const StreamSite& second) {
  accesses.filter(range, [&](CopyAccess& access) {
    if (!access.is_reported && !order.covers(access.point)) {
      log.add(kind, access.site, second);
      access.is_reported = true;
    }
    return true;
  });
}

void StreamRace::State::end_of_memory(AddressSpan range, HazardKind kind, const StreamSite& second) {
  accesses.filter(range, [&](const CopyAccess& access) {
    if (!clocks.host().covers(access.point)) log.add(kind, access.site, second);
    return !range.contains(access.range);
  });
}

void StreamRace::State::forget_some() {
  accesses.forget_below(clocks.floor());
  forget_at = std::max(kFewAccesses, 2 * accesses.size());
}

auto StreamRace::State::recorded(EventId event, const StreamSite& second) -> Event* {
  const auto found = events.find(event);
  if (found != events.end() && found->second.record) return &found->second;
  const StreamSite unknown{SiteKind::kEventCreated};
  log.add(HazardKind::kNeverRecorded, found == events.end() ? unknown : found->second.created, second);
  return nullptr;
}

StreamRace::StreamRace() : state_(std::make_unique<State>()) {}
StreamRace::~StreamRace() = default;
StreamRace::StreamRace(StreamRace&&) noexcept = default;
StreamRace& StreamRace::operator=(StreamRace&&) noexcept = default;

void StreamRace::set_op(std::string_view op) {
  state_->op = state_->texts.get(op);
}

void StreamRace::stream_created(StreamId stream, StreamKind kind) {
  state_->clocks.created(stream, kind);
}

void StreamRace::stream_destroyed(StreamId stream) {
  state_->clocks.destroyed(stream);
}

void StreamRace::kernel(StreamId stream, std::string_view name) {
  auto launch = state_->enqueue(stream, SiteKind::kKernel, 0);
  launch.site.name = state_->texts.get(name);
  state_->last_launch(launch.stream) = State::Launch{launch.point, launch.site};
}

void StreamRace::copy(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes) {
  if (bytes <= 0) return;
  const auto operation = state_->enqueue(stream, copy_kind(to.place, from.place), bytes);
  state_->access(operation, from, bytes, false);
  state_->access(operation, to, bytes, true);
  if (to.place == MemoryPlace::kPageable) state_->clocks.host_reached_stream(operation.stream);
}

void StreamRace::set(StreamId stream, const void* address, Bytes bytes) {
  if (bytes <= 0) return;
  state_->access(state_->enqueue(stream, SiteKind::kSet, bytes), {address, MemoryPlace::kDevice}, bytes,
                 true);
}

void StreamRace::event_created(EventId event) {
  state_->events[event] = State::Event{state_->site(SiteKind::kEventCreated), {}, {}};
}

void StreamRace::event_destroyed(EventId event) {
  state_->events.erase(event);
}

void StreamRace::event_recorded(EventId event, StreamId stream) {
  const auto index = state_->clocks.index(stream);
  State::Event& entry = state_->events[event];
  entry.recorded = state_->site_on(index, SiteKind::kEventRecorded);
  entry.record = state_->clocks.record(index);
}

void StreamRace::stream_waits(StreamId stream, EventId event) {
  const auto index = state_->clocks.index(stream);
  const StreamSite site = state_->site_on(index, SiteKind::kStreamWaits);
  const State::Event* entry = state_->recorded(event, site);
  if (entry == nullptr || state_->clocks.wait(index, *entry->record)) return;
  state_->log.add(HazardKind::kNeedlessWait, entry->recorded, site);
}

void StreamRace::event_synchronised(EventId event) {
  const State::Event* entry = state_->recorded(event, state_->site(SiteKind::kEventSynchronised));
  if (entry != nullptr) state_->clocks.host_reached(entry->record->order);
}

void StreamRace::event_time_asked(EventId event) {
  state_->recorded(event, state_->site(SiteKind::kEventTimeAsked));
}

void StreamRace::stream_synchronised(StreamId stream) {
  state_->clocks.host_reached_stream(state_->clocks.index(stream));
}

void StreamRace::device_synchronised() {
  state_->clocks.host_reached_device();
}

void StreamRace::block_allocated(const void* block, Bytes bytes, StreamId stream) {
  if (bytes <= 0) return;
  const AddressSpan range = span_of(block, bytes);
  const auto index = state_->clocks.index(stream);
  state_->check_touching(range, state_->clocks.next_order(index), HazardKind::kHandedOutUnderCopy,
                         state_->site_on(index, SiteKind::kBlockAllocated, bytes));
  erase_overlapping(state_->blocks, range);
  state_->blocks[range.begin] = {range, index, state_->clocks.tick(index), state_->last_launch(index), false};
}

void StreamRace::block_freed(const void* block) {
  const auto found = state_->blocks.find(reinterpret_cast<std::uintptr_t>(block));
  if (found == state_->blocks.end()) return;
  const AddressSpan range = found->second.range;
  const auto stream = found->second.stream;
  const auto bytes = static_cast<Bytes>(range.end - range.begin);
  state_->check_touching(range, state_->clocks.next_order(stream), HazardKind::kGivenBackUnderCopy,
                         state_->site_on(stream, SiteKind::kBlockFreed, bytes));
  state_->blocks.erase(found);
}

void StreamRace::segment_freed(const void* address, Bytes bytes) {
  device_synchronised();
  erase_overlapping(state_->blocks, span_of(address, bytes));
  state_->accesses.forget_below(state_->clocks.host());
}

void StreamRace::segment_unmapped(const void* address, Bytes bytes) {
  const AddressSpan range = span_of(address, bytes);
  state_->end_of_memory(range, HazardKind::kUnmappedUnderCopy, state_->site(SiteKind::kUnmapped, bytes));
  erase_overlapping(state_->blocks, range);
}

void StreamRace::host_block_allocated(const void* block, Bytes bytes) {
  if (bytes <= 0) return;
  const AddressSpan range = span_of(block, bytes);
  erase_overlapping(state_->pieces, range);
  state_->pieces[range.begin] = {range, ++state_->last_piece};
}

void StreamRace::host_block_freed(const void* block) {
  state_->pieces.erase(reinterpret_cast<std::uintptr_t>(block));
}

void StreamRace::pinned_freed(const void* address, Bytes bytes) {
  const AddressSpan range = span_of(address, bytes);
  state_->end_of_memory(range, HazardKind::kPinnedFreedUnderCopy,
                        state_->site(SiteKind::kPinnedFreed, bytes));
  erase_overlapping(state_->pieces, range);
}

std::vector<StreamHazard> StreamRace::take_hazards() {
  return state_->log.take();
}

std::size_t StreamRace::remembered() const {
  return state_->accesses.size();
}

}  // namespace offprof
