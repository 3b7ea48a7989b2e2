#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulator/caching_allocator/allocator_settings.h"
#include "traces/allocator_state.h"
#include "traces/error.h"
#include "traces/units.h"

namespace offprof {

/// The device that the allocator gets its memory from.
struct DeviceLimits {
  std::optional<Bytes> capacity = {};  ///< what cudaMalloc gives out at most; nullopt: it never refuses
  /// What cudaMemGetInfo calls total: per_process_memory_fraction is of it, and the address range of an
  /// expandable segment is an eighth larger. 0: as capacity, or without one a terabyte.
  Bytes total = 0;
  /// What the allocator may reserve by its own count, as setMemoryFraction lays down; nullopt: what the
  /// settings' per_process_memory_fraction makes of the total.
  std::optional<Bytes> allowed = {};
};

/// Neither the cache nor the device had room, even after all that was cached and free had been given back.
class AllocatorOutOfMemory : public Error {
 public:
  AllocatorOutOfMemory(Bytes requested, Bytes allocated, Bytes reserved);

  const Bytes requested_bytes;  ///< as asked for, not rounded
  const Bytes allocated_bytes, reserved_bytes;
};

/// The CUDA events by which the allocator learns whether a stream has passed a point. Blocks that streams
/// other than their own have used wait for them.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  /// Event number `event`, counted up from 0, is recorded on `stream` now.
  virtual void record(std::uint64_t event, std::int32_t stream) = 0;
  virtual bool is_complete(std::uint64_t event) = 0;
};

/// A sum of bytes and the largest that it was since the peaks were reset.
struct PeakedBytes {
  Bytes current = 0;
  Bytes peak = 0;

  void add(Bytes bytes) {
    current += bytes;
    if (current > peak) peak = current;
  }
  bool operator==(const PeakedBytes&) const = default;
};

/// As torch.cuda.memory_stats counts, small and large pool together.
struct AllocatorCounters {
  PeakedBytes requested;      ///< as asked for, of active blocks
  PeakedBytes allocated;      ///< of blocks that are handed out
  PeakedBytes active;         ///< of blocks that are handed out or wait for events
  PeakedBytes reserved;       ///< got from CUDA
  std::int64_t segments = 0;  ///< got by cudaMalloc; expandable ones do not count
  std::int64_t retries = 0;   ///< how often the whole cache was given back to serve a request

  bool operator==(const AllocatorCounters&) const = default;
};

/// A piece of a segment.
struct CachedBlock {
  Bytes bytes = 0;
  Bytes requested_bytes = 0;  ///< 0 where it is not active
  bool allocated = false;
  bool active = false;  ///< allocated, or freed and waiting for events
  std::int32_t storage = -1;

  bool operator==(const CachedBlock&) const = default;
};

/// A piece of device memory at consecutive addresses.
struct CachedSegment {
  Bytes address = 0;       ///< of the model: later segments have higher ones
  Bytes range_offset = 0;  ///< expandable: from the begin of the range of addresses that it lies in
  std::int32_t stream = 0;
  bool is_large = false;
  bool is_expandable = false;
  std::vector<CachedBlock> blocks;

  bool operator==(const CachedSegment&) const = default;
};

/// What PyTorch's CUDA caching allocator (LibTorch 2.11, c10/cuda/CUDACachingAllocator.cpp) does with the
/// device's memory, without the device: the same blocks for the same requests, in the same segments. Graph
/// pools and memory pools of the user are not modelled. Can be copied; a copy goes its own way, with handles
/// that are valid in both.
class CachingAllocator {
 public:
  /// A block that is handed out.
  using Handle = std::int32_t;
  using Stream = std::int32_t;

  explicit CachingAllocator(AllocatorSettings settings, DeviceLimits memory = {});
  /// Begins with what `state` holds, under its settings; peaks begin at the current values. Throws Error
  /// (input) where the settings are refused, or where memory is mapped that is no whole granules of theirs.
  explicit CachingAllocator(const AllocatorState& state, DeviceLimits memory = {});

  /// The block that holds `bytes` (> 0) for use on `stream`. `storage` is what state() calls it. Throws
  /// AllocatorOutOfMemory; the cache has then been given back, and what is handed out is as it was.
  Handle allocate(Bytes bytes, Stream stream = 0, std::int32_t storage = -1);
  /// Takes back what allocate gave. Where record_stream named other streams, the block becomes free when
  /// events on them are complete, which is looked at in allocate and empty_cache only.
  void free(Handle block);
  /// Work on `stream` uses the block, too.
  void record_stream(Handle block, Stream stream);
  /// Waits for all events and gives back to CUDA what is free in whole segments or granules.
  void empty_cache();

  /// Who knows when events are complete; nullptr (the default): they are when they are looked at. Not owned.
  void set_events(StreamEvents* events) { events_ = events; }

  const AllocatorSettings& settings() const { return settings_; }
  const AllocatorCounters& counters() const { return counters_; }
  void reset_peaks();

  /// Everything that is reserved, in the order of addresses.
  std::vector<CachedSegment> segments() const;
  /// The same as a trace keeps it. A block that waits for events counts as allocated. Two equal states serve
  /// all that follows alike, but for two things that no snapshot of PyTorch's says (LibTorch 2.11 leaves
  /// BlockInfo::gc_counter 0): which other streams have used a block, and how long whole segments have been
  /// cached, by which garbage collection chooses. Right after empty_cache there are no such segments.
  AllocatorState state() const;
  /// The handed-out blocks that carry a storage's number (>= 0), by that number.
  std::map<std::int32_t, Handle> blocks_by_storage() const;

  /// The block's size, of which the requested bytes are a part.
  Bytes block_bytes(Handle block) const { return blocks_[block].bytes; }

 private:
  static constexpr std::int32_t kNone = -1;

  struct Block {
    Bytes address = 0;
    Bytes bytes = 0;
    Bytes requested_bytes = 0;
    std::int32_t previous = kNone, next = kNone;  // neighbours in the segment or address range
    std::int32_t range = kNone;                   // expandable: index in ranges_
    Stream stream = 0;
    std::int32_t storage = -1;
    std::int32_t pending_events = 0;
    std::int64_t age_base = 0;  // Pool::searches when it became free
    bool is_large = false;
    bool allocated = false;
    bool mapped = true;
    bool used_elsewhere = false;  // is a key of stream_uses_
  };

  // Sorts by size, then by address: the first that is not less than a request is the best fit.
  struct FreeKey {
    Bytes bytes;
    Bytes address;
    std::int32_t block;
    bool operator<(const FreeKey& other) const {
      return bytes != other.bytes ? bytes < other.bytes : address < other.address;
    }
  };
  using FreeBlocks = std::set<FreeKey>;
  using UnmappedBlocks = std::map<Bytes, std::int32_t>;  // by address

  // The free blocks of one stream in the small or the large pool.
  struct StreamPool {
    FreeBlocks free;
    UnmappedBlocks unmapped;
  };
  struct Pool {
    std::vector<StreamPool> streams;
    std::int64_t searches = 0;  // counted while garbage is collected
  };
  // Addresses reserved for an expandable segment, of which whole granules are mapped to memory.
  struct Range {
    Bytes address = 0;
    Bytes granule = 0;
    Bytes bytes = 0;
  };
  struct Request {
    Bytes bytes = 0;  // rounded
    Stream stream = 0;
    bool is_large = false;
  };
  struct PendingEvent {
    std::uint64_t event = 0;
    std::int32_t block = kNone;
  };

  // caching_allocator.cpp
  std::int32_t find_block(const Request& request);
  std::int32_t cached_block(const Request& request);
  std::int32_t new_segment(const Request& request);
  std::int32_t cuda_malloc(const Request& request);
  bool should_split(std::int32_t block, Bytes bytes) const;
  std::int32_t split(std::int32_t block, Bytes bytes);
  void hand_out(std::int32_t block, Bytes requested, std::int32_t storage);
  void make_free(std::int32_t block);
  bool is_idle(std::int32_t block) const;
  void merge(std::int32_t into, std::int32_t neighbour);
  void record_events(std::int32_t block);
  void pass_event(const PendingEvent& pending);
  void process_events();
  void synchronize_events();

  // block_table.cpp
  std::int32_t add_block(const Block& block);
  void drop_block(std::int32_t block);
  std::int32_t cut_front(std::int32_t block, Bytes bytes);
  void link(std::int32_t previous, std::int32_t next);
  StreamPool& stream_pool(bool is_large, Stream stream);
  StreamPool& pool_of(std::int32_t block) {
    return stream_pool(blocks_[block].is_large, blocks_[block].stream);
  }
  void insert_free(std::int32_t block);
  void erase_free(std::int32_t block);

  // release.cpp
  bool collects_garbage() const;
  void collect_garbage();
  std::vector<std::int32_t> collectable() const;
  std::int64_t age(std::int32_t block) const { return pools_[1].searches - blocks_[block].age_base; }
  bool is_whole_segment(std::int32_t block) const;
  bool release_oversize(const Request& request);
  bool release_largest(const FreeBlocks& free, Bytes target);
  void release_all();
  void release_pool(bool is_large);
  void release_segment(std::int32_t block);
  bool may_get(Bytes bytes) const;
  bool device_has(Bytes bytes) const;
  static Bytes on_device(Bytes bytes);
  Bytes reserve_addresses(Bytes bytes);

  // expandable_segments.cpp
  Bytes expandable_bytes(std::int32_t block) const;
  FreeBlocks::iterator best_expandable(const FreeBlocks& free, FreeBlocks::iterator fit) const;
  std::int32_t expand(const Request& request);
  std::int32_t find_room(const Request& request);
  bool has_room(std::int32_t block, Bytes bytes) const;
  Bytes granule(bool is_large) const { return is_large ? settings_.large_segment_bytes : kSmallSegmentBytes; }
  std::int32_t reserve_range(bool is_large, Stream stream, Bytes least = 0);
  bool map(std::int32_t block, Bytes bytes);
  void unmap(std::int32_t block);

  // allocator_state.cpp
  void load(const AllocatorSegment& segment, const std::vector<Bytes>& range_ends);
  std::int32_t malloc_anew(const AllocatorSegment& segment);
  std::int32_t map_anew(const AllocatorSegment& segment, const std::vector<Bytes>& range_ends);
  CachedSegment segment_from(std::int32_t head) const;

  AllocatorSettings settings_;
  DeviceLimits memory_;
  std::optional<Bytes> allowed_bytes_;  // nullopt: no limit
  StreamEvents* events_ = nullptr;
  AllocatorCounters counters_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> unused_blocks_;  // of blocks_
  Pool pools_[2];                            // small, large
  std::vector<Range> ranges_;
  std::map<std::int32_t, std::vector<Stream>> stream_uses_;  // by block
  std::map<Stream, std::deque<PendingEvent>> pending_;
  std::uint64_t next_event_ = 0;
  Bytes next_address_ = 0;
  Bytes device_used_ = 0;  // in granules of the device
};

}  // namespace offprof
