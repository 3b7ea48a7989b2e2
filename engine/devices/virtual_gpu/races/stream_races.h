#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "traces/base/units.h"

namespace offprof {

/// Kind of memory that an address belongs to.
enum class MemoryPlace {
  kDevice,
  kPinned,    ///< page-locked host memory: the host does not wait for the copy
  kPageable,  ///< any other host memory: the host no longer needs it when the call returns
};

/// One end of a copy.
struct CopyEnd {
  const void* address = nullptr;
  MemoryPlace place = MemoryPlace::kDevice;
};

/// Stream race checker. It receives each call in the order in which the host makes them, and finds accesses
/// that streams and events leave unordered, even if they did not go wrong in this run.
///
/// It uses happens-before order: every stream and the host have a vector clock, and every recorded event a
/// copy of its stream's. The host's clock covers all operations that it has synchronised with. An operation
/// happens after all earlier operations of its stream, those that the stream has waited for, and those that
/// the host had observed when it made the call (Lamport 1978; Mattern 1989). The memory that a kernel touches
/// is not known: any kernel may write any block of its stream.
///
/// Reports the following, each pair of sites once (sites differ by kind, kernel, operator and stream):
/// - a copy that reads a block while a kernel may run that was launched on the block's stream since the block
///   was handed out;
/// - a copy that writes a block while a kernel may run that was launched on the block's stream before the
///   block was handed out: that kernel may have used its memory. Once a copy has touched a block, the first
///   rule applies to writes as well;
/// - a block that is freed or handed out while a copy that touches it is not ordered before the block's
///   stream;
/// - two copies (or memsets) of overlapping ranges, at least one of them writing, neither ordered before the
///   other;
/// - a copy to or from pinned memory that was freed and handed out again while an earlier copy may still run;
/// - pinned memory that is freed, or device memory that is unmapped, under a copy whose end the host has not
///   seen;
/// - an event that was never recorded, but is waited for, synchronised with or asked for its time;
/// - a wait that orders nothing: the stream is already ordered after that record by itself or by its waits.
///   Order that only the host has established does not count, since the code that enqueues a wait cannot know
///   of it.
///
/// The checker forgets copies that the host, or all streams used so far, are ordered after. A stream that is
/// first used later is not checked against them, unless the host saw their end. Not thread-safe.
class StreamRace {
 public:
  StreamRace();
  ~StreamRace();
  StreamRace(StreamRace&&) noexcept;
  StreamRace& operator=(StreamRace&&) noexcept;

  /// Sets the operator that the following calls belong to; empty: none. Copies the text.
  void set_op(std::string_view op);

  /// A stream that was never created counts as non-blocking, and nullptr as the legacy default stream.
  void stream_created(StreamId stream, StreamKind kind);
  void stream_destroyed(StreamId stream);

  void kernel(StreamId stream, std::string_view name);
  /// cudaMemcpyAsync. A copy to pageable memory returns when it is done, so the host is ordered after it. A
  /// cudaMemcpy consists of this call and stream_synchronised.
  void copy(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes);
  /// cudaMemsetAsync of device memory.
  void set(StreamId stream, const void* address, Bytes bytes);

  void event_created(EventId event);
  void event_destroyed(EventId event);
  void event_recorded(EventId event, StreamId stream);
  void stream_waits(StreamId stream, EventId event);

  /// The host has waited for the event's last record, or a query found it reached.
  void event_synchronised(EventId event);
  /// cudaEventElapsedTime; called for each of its two events.
  void event_time_asked(EventId event);
  /// The host has waited for the stream, or a query found all its work done.
  void stream_synchronised(StreamId stream);
  void device_synchronised();

  /// A caching allocator hands out a block for use on `stream`.
  void block_allocated(const void* block, Bytes bytes, StreamId stream);
  /// The block is back in the allocator, which may hand it out again on that stream. For a block with
  /// recordStream this is when its events were seen, not when its owner freed it.
  void block_freed(const void* block);
  /// cudaFree, which waits for the device.
  void segment_freed(const void* address, Bytes bytes);
  /// cuMemUnmap, which waits for nothing.
  void segment_unmapped(const void* address, Bytes bytes);

  /// The manager of pinned memory hands out a piece of it, or gets it back.
  void host_block_allocated(const void* block, Bytes bytes);
  void host_block_freed(const void* block);
  /// cudaFreeHost, cudaHostUnregister.
  void pinned_freed(const void* address, Bytes bytes);

  /// Returns the hazards found since the last call, in the order in which they were found.
  std::vector<StreamHazard> take_hazards();

  /// Returns the number of copy accesses that are remembered at the moment.
  std::size_t remembered() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace offprof
