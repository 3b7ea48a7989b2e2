#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/copy_record.h"
#include "simulator/virtual_gpu/stream_ids.h"
#include "traces/link.h"
#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

/// From when to when something ran on the device.
struct TimeSpan {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;

  bool operator==(const TimeSpan&) const = default;
};

/// The host, the streams and the copy engines on virtual clocks.
///
/// Work that a stream is given begins when the stream has done what it was given before, not before the host
/// gave it. A copy also waits for the engine of its direction, which all streams share and which takes copies
/// one at a time in the order in which they were given. Kernels of several streams do not slow each other
/// down. An event is the point that its stream had come to. Not thread-safe.
class VirtualTime {
 public:
  /// The legacy default stream, nullptr, is there from the beginning.
  explicit VirtualTime(const Link& link);

  Nanoseconds host_time() const { return host_; }
  void advance_host(Nanoseconds duration);
  /// When something would begin that the stream were given now.
  Nanoseconds stream_time(StreamId stream) { return begin_on(stream_for_work(stream)); }
  /// The host, or what the stream is given from here on, waits until then; no Work tells of it.
  void hold_host(Nanoseconds until) { host_reaches(until); }
  void hold_stream(StreamId stream, Nanoseconds until);

  /// What the legacy default stream was given since the last call, which is the stream that PyTorch computes
  /// on, and how the host waited for it: everything but copies over the link.
  Work take_work() { return std::exchange(work_, {}); }
  /// Likewise all other streams, taken as one.
  Work take_side_work() { return std::exchange(side_work_, {}); }

  /// Sets all clocks back to zero; streams and events stay, events are as if never recorded.
  void restart(const Link& link);

  void create_stream(StreamId stream, StreamKind kind);
  void destroy_stream(StreamId stream);
  bool has_stream(StreamId stream) const { return streams_.contains(stream); }

  /// Something that takes that long on the stream: a kernel, a memset, a copy within device memory.
  TimeSpan run(StreamId id, Nanoseconds duration);
  /// Over the link, in the direction's one copy engine; pageable memory is taken to be as fast as pinned.
  TimeSpan copy(StreamId id, CopyDirection direction, Bytes bytes);

  void create_event(EventId event) { events_.emplace(event, std::nullopt); }
  void destroy_event(EventId event) { events_.erase(event); }
  bool has_event(EventId event) const { return events_.contains(event); }
  void record(EventId event, StreamId stream);
  /// The stream's later work begins after the event's last record so far; never recorded: no wait.
  void wait(StreamId stream, EventId event);
  /// When its last record is reached; nullopt: never recorded.
  std::optional<Nanoseconds> event_time(EventId event) const;

  /// Whether the host's clock has come to what the event, or all that the stream was given.
  bool is_reached(EventId event) const;
  bool is_done(StreamId stream) const;

  /// The host waits.
  void synchronise_event(EventId event);
  void synchronise_stream(StreamId stream);
  void synchronise_device();

 private:
  struct Stream {
    StreamKind kind = StreamKind::kNonBlocking;
    Nanoseconds ready = 0;
  };

  Stream& stream_for_work(StreamId id);
  void note(const Work& work);
  Nanoseconds begin_on(const Stream& stream) const;
  void host_reaches(Nanoseconds time);

  Link link_;
  Work work_, side_work_;
  Nanoseconds host_ = 0;
  Nanoseconds d2h_ready_ = 0, h2d_ready_ = 0;
  std::map<StreamId, Stream> streams_;
  std::unordered_map<EventId, std::optional<Nanoseconds>> events_;
  Nanoseconds destroyed_ready_ = 0;  ///< what streams that are no more still had to do
};

}  // namespace offprof
