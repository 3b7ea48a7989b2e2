#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "simulator/allocator/allocator_settings.h"
#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/model/allocator_state.h"

namespace offprof {

/// The device from which the allocator gets its memory.
struct DeviceLimits {
  std::optional<Bytes> capacity = {};  ///< most that cudaMalloc gives out; nullopt: it never fails
  /// Total memory as cudaMemGetInfo reports it. per_process_memory_fraction is a fraction of it, and the
  /// address range of an expandable segment is an eighth larger. 0: same as capacity, or one terabyte if that
  /// is nullopt.
  Bytes total = 0;
  /// Most that the allocator may reserve by its own count, as set by setMemoryFraction; nullopt: the
  /// settings' per_process_memory_fraction of the total.
  std::optional<Bytes> allowed = {};
};

/// Error thrown if neither the cache nor the device has room, even after all free cached memory was returned.
class AllocatorOutOfMemory : public Error {
 public:
  AllocatorOutOfMemory(Bytes requested, Bytes allocated, Bytes reserved);

  const Bytes requested_bytes;  ///< size of the request, not rounded
  const Bytes allocated_bytes, reserved_bytes;
};

/// CUDA events that tell the allocator whether a stream has passed a point. Blocks that were used on streams
/// other than their own wait for such events.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  /// Called when event number `event`, counted up from 0, is recorded on `stream`.
  virtual void record(std::uint64_t event, std::int32_t stream) = 0;
  virtual bool is_complete(std::uint64_t event) = 0;
};

/// A sum of bytes, and its maximum since the peaks were reset.
struct PeakedBytes {
  Bytes current = 0;
  Bytes peak = 0;

  void add(Bytes bytes) {
    current += bytes;
    if (current > peak) peak = current;
  }
  bool operator==(const PeakedBytes&) const = default;
};

/// Counters with the meaning of torch.cuda.memory_stats, for the small and the large pool together.
struct AllocatorCounters {
  PeakedBytes requested;      ///< requested sizes of active blocks
  PeakedBytes allocated;      ///< sizes of allocated blocks
  PeakedBytes active;         ///< sizes of blocks that are allocated or wait for events
  PeakedBytes reserved;       ///< memory held from CUDA
  std::int64_t segments = 0;  ///< allocated by cudaMalloc; expandable segments do not count
  std::int64_t retries = 0;   ///< how often the whole cache was freed to serve a request

  bool operator==(const AllocatorCounters&) const = default;
};

/// Part of a segment.
struct CachedBlock {
  Bytes bytes = 0;
  Bytes requested_bytes = 0;  ///< 0 if it is not active
  bool allocated = false;
  bool active = false;  ///< allocated, or freed and waiting for events
  std::int32_t storage = -1;

  bool operator==(const CachedBlock&) const = default;
};

/// A range of device memory at consecutive addresses.
struct CachedSegment {
  Bytes address = 0;       ///< in the model; later segments have lower ones: see AddressSpace
  Bytes range_offset = 0;  ///< expandable: offset from the beginning of its address range
  std::int32_t stream = 0;
  bool is_large = false;
  bool is_expandable = false;
  std::vector<CachedBlock> blocks;

  bool operator==(const CachedSegment&) const = default;
};

/// Model of PyTorch's CUDA caching allocator (LibTorch 2.11, c10/cuda/CUDACachingAllocator.cpp) without a
/// device: the same requests get the same blocks in the same segments. CUDA graph pools and user-created
/// memory pools are not modelled. Copyable; a copy is independent, and handles are valid in both.
class CachingAllocator {
 public:
  /// Index of an allocated block.
  using Handle = std::int32_t;
  using Stream = std::int32_t;

  explicit CachingAllocator(AllocatorSettings settings, DeviceLimits memory = {});
  /// Begins with the contents and the settings of `state`; peaks begin at the current values. Throws Error
  /// (input) if the settings are rejected, or if `state` maps memory that is not a multiple of the settings'
  /// granule.
  explicit CachingAllocator(const AllocatorState& state, DeviceLimits memory = {});

  /// Allocates a block of at least `bytes` (> 0) for use on `stream`. `storage` is its number in state().
  /// Throws AllocatorOutOfMemory; in that case the cache has been freed, and allocated blocks are unchanged.
  Handle allocate(Bytes bytes, Stream stream = 0, std::int32_t storage = -1);
  /// Frees a block returned by allocate. If record_stream named other streams, the block becomes free when
  /// events on them are complete; only allocate and empty_cache check that.
  void free(Handle block);
  /// Notes that the program frees the block, which stays in use until free: it waits for events that are not
  /// modelled. No effect if that was noted before.
  void request_free(Handle block);
  /// Returns true if request_free was called for a block that is not free yet.
  bool is_free_requested(Handle block) const {
    return !blocks_[block].allocated && blocks_[block].pending_events == 1;
  }
  /// Notes that work on `stream` also uses the block.
  void record_stream(Handle block, Stream stream);
  /// Waits for all events, and returns free memory to CUDA in whole segments or granules.
  void empty_cache();

  /// Sets the source of event states; nullptr (the default): events are complete when checked. Not owned.
  void set_events(StreamEvents* events) { events_ = events; }

  const AllocatorSettings& settings() const { return settings_; }
  const AllocatorCounters& counters() const { return counters_; }
  void reset_peaks();

  /// Returns all reserved memory, ordered by address.
  std::vector<CachedSegment> segments() const;
  /// Returns the same in the form of a trace. A block that waits for events counts as allocated. Two
  /// allocators with equal states behave alike from then on, except for two things that PyTorch's snapshots
  /// do not contain (LibTorch 2.11 leaves BlockInfo::gc_counter 0): the other streams that have used a block,
  /// and how long whole segments have been cached, which garbage collection goes by. Right after empty_cache
  /// there are no such segments.
  AllocatorState state() const;
  /// Returns the allocated blocks that have a storage's number (>= 0), by that number.
  std::map<std::int32_t, Handle> blocks_by_storage() const;

  /// Returns the block's size, which includes the requested bytes.
  Bytes block_bytes(Handle block) const { return blocks_[block].bytes; }
  /// Returns the block's address: see CachedSegment::address.
  Bytes block_address(Handle block) const { return blocks_[block].address; }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr Bytes kLeastAddress = std::numeric_limits<Bytes>::min();
  static constexpr Bytes kFirstAddress = 0x7f00'0000'0000;  // like the driver's

  struct Block {
    Bytes address = 0;
    Bytes bytes = 0;
    Bytes requested_bytes = 0;
    std::int32_t previous = kNone, next = kNone;  // neighbours in the segment or address range
    std::int32_t range = kNone;                   // expandable: index in ranges_
    Stream stream = 0;
    std::int32_t storage = -1;
    std::int32_t pending_events = 0;
    std::int64_t age_base = 0;  // Pool::searches at the time it became free
    bool is_large = false;
    bool allocated = false;
    bool mapped = true;
    bool used_elsewhere = false;  // true if it is a key of stream_uses_
  };

  // Order by size, then by address: the first key that is not less than a request is the best fit.
  struct FreeKey {
    Bytes bytes;
    Bytes address;
    std::int32_t block;
    bool operator<(const FreeKey& other) const {
      return bytes != other.bytes ? bytes < other.bytes : address < other.address;
    }
  };
  using FreeBlocks = std::vector<FreeKey>;               // sorted; a pool has few
  using UnmappedBlocks = std::map<Bytes, std::int32_t>;  // by address

  // The free blocks of one stream in the small or the large pool.
  struct StreamPool {
    FreeBlocks free;
    UnmappedBlocks unmapped;
  };
  struct Pool {
    std::vector<StreamPool> streams;
    std::int64_t searches = 0;  // counted only if garbage collection is on
  };
  // Addresses reserved for an expandable segment; memory is mapped to them in whole granules.
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
  void take_back(Block& entry);
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
  Bytes reserve_addresses_above(Bytes bytes);

  // expandable_segments.cpp
  Bytes expandable_bytes(std::int32_t block) const;
  FreeBlocks::const_iterator best_expandable(const FreeBlocks& free, FreeBlocks::const_iterator fit) const;
  std::int32_t expand(const Request& request);
  std::int32_t find_room(const Request& request);
  bool has_room(std::int32_t block, Bytes bytes) const;
  Bytes granule(bool is_large) const { return is_large ? settings_.large_segment_bytes : kSmallSegmentBytes; }
  std::int32_t reserve_range(bool is_large, Stream stream);
  Bytes range_bytes(bool is_large, Bytes least) const;
  std::int32_t add_range(bool is_large, Stream stream, Bytes address, Bytes bytes);
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
  Bytes lowest_address_ = kFirstAddress, end_address_ = kFirstAddress;  // of all that are reserved
  Bytes device_used_ = 0;  // rounded up to granules of the device
};

}  // namespace offprof
