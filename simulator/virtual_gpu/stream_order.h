#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "simulator/virtual_gpu/stream_ids.h"
#include "simulator/virtual_gpu/virtual_gpu.h"
#include "traces/units.h"

namespace offprof {

/// Whose memory an address is.
enum class MemoryPlace {
  kDevice,
  kPinned,    ///< page-locked host memory: copies run beside the host
  kPageable,  ///< any other host memory: the host is done with it when the call returns
};

/// One end of a copy.
struct CopyEnd {
  const void* address = nullptr;
  MemoryPlace place = MemoryPlace::kDevice;
};

/// The happens-before checker: told of each call in the order in which the host makes them, it finds what
/// streams and events leave unordered, whether or not it would have gone wrong this time.
///
/// Every stream has a vector clock, every recorded event a copy of one, and the host one for what it has
/// synchronised with. An operation happens after all that its stream was given before, what the stream has
/// waited for, and what the host had observed when it made the call (Lamport 1978; Mattern 1989). What a
/// kernel touches is not known: any kernel may write any block of its stream.
///
/// Reported, each pair of sites once (sites differ by kind, kernel, operator and stream):
///  - a copy that reads a block while a kernel launched on the block's stream since it was handed out may
///  run;
///  - a copy that writes a block while a kernel may run that was launched on the block's stream before the
///  block was
///    handed out: its memory may have been in use. Once a copy has touched a block, writes are held to the
///    first rule as well;
///  - a block given back, or handed out, while a copy that touches it is not ordered before the block's
///  stream;
///  - two copies (or memsets) of overlapping ranges, one of them writing, neither ordered before the other;
///  - pinned memory that was given back, handed out again and is copied to or from while an earlier copy may
///  run;
///  - pinned memory freed, or device memory unmapped, under a copy that the host has not seen the end of;
///  - an event waited for, synchronised with or asked for its time that was never recorded;
///  - a wait that orders nothing: the stream is ordered after that record by itself or by its waits. What
///  only the
///    host has ordered does not count, since who enqueues a wait cannot know of it.
///
/// Copies that all streams used so far, or the host, are ordered after are forgotten: a stream used for the
/// first time afterwards is not held against them, unless the host saw their end. Not thread-safe.
class StreamOrder {
 public:
  StreamOrder();
  ~StreamOrder();
  StreamOrder(StreamOrder&&) noexcept;
  StreamOrder& operator=(StreamOrder&&) noexcept;

  /// The calls that follow are made inside that operator; empty: in none. The text is copied.
  void set_op(std::string_view op);

  /// A stream nobody has created is taken for a non-blocking one, nullptr for the legacy default stream.
  void stream_created(StreamId stream, StreamKind kind);
  void stream_destroyed(StreamId stream);

  void kernel(StreamId stream, std::string_view name);
  /// cudaMemcpyAsync. One to pageable memory returns when it is done: the host is then ordered after it. A
  /// cudaMemcpy is this and stream_synchronised.
  void copy(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes);
  /// cudaMemsetAsync of device memory.
  void set(StreamId stream, const void* address, Bytes bytes);

  void event_created(EventId event);
  void event_destroyed(EventId event);
  void event_recorded(EventId event, StreamId stream);
  void stream_waits(StreamId stream, EventId event);

  /// The host has waited for the event's last record, or a query said that it was reached.
  void event_synchronised(EventId event);
  /// cudaEventElapsedTime, for each of its two events.
  void event_time_asked(EventId event);
  /// Likewise when a query said that all its work was done.
  void stream_synchronised(StreamId stream);
  void device_synchronised();

  /// A caching allocator hands a block out, for use on `stream`.
  void block_allocated(const void* block, Bytes bytes, StreamId stream);
  /// It has the block back and may hand it out again on that stream. For a block with recordStream that is
  /// when its events were seen, not when its owner let go.
  void block_freed(const void* block);
  /// cudaFree, which waits for the device.
  void segment_freed(const void* address, Bytes bytes);
  /// cuMemUnmap, which waits for nothing.
  void segment_unmapped(const void* address, Bytes bytes);

  /// A piece of pinned memory is handed out by whoever manages it, or is given back to him.
  void host_block_allocated(const void* block, Bytes bytes);
  void host_block_freed(const void* block);
  /// cudaFreeHost, cudaHostUnregister.
  void pinned_freed(const void* address, Bytes bytes);

  /// Those found since the last call, in the order in which they were found.
  std::vector<StreamHazard> take_hazards();

  /// How many copies' accesses are remembered at the moment.
  std::size_t remembered() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace offprof
