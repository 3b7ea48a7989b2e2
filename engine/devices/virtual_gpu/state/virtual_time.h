#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "traces/base/units.h"
#include "traces/model/copy_record.h"
#include "traces/model/link.h"
#include "traces/model/work.h"

namespace offprof {

/// Period in which something ran on the device.
struct TimeSpan {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;

  bool operator==(const TimeSpan&) const = default;
};

/// Virtual clocks of the host, the streams and the copy engines.
///
/// Work of a stream begins when the stream has finished its earlier work, and not before the host gave it. A
/// copy also waits for the copy engine of its direction, which all streams share (LinkEngines). A copy on
/// another stream than the legacy default one makes that one finish its work later (LinkDirection). Kernels
/// of different streams do not slow each other down. An event marks the point that its stream had reached.
/// Not thread-safe.
class VirtualTime {
 public:
  /// Creates the clocks with one stream, the legacy default stream (nullptr).
  explicit VirtualTime(const Link& link);

  Nanoseconds host_time() const { return host_; }
  void advance_host(Nanoseconds duration);
  /// Returns the time at which work would begin if the stream were given it now.
  Nanoseconds stream_time(StreamId stream) { return begin_on(stream_for_work(stream)); }
  /// Makes the host, or all later work of the stream, wait until that time. No Work includes this wait.
  void hold_host(Nanoseconds until) { host_reaches(until); }
  void hold_stream(StreamId stream, Nanoseconds until);

  /// Returns the work given since the last call to the legacy default stream, on which PyTorch computes, and
  /// how the host waited for it. Includes the copies over the link that a program itself makes on that
  /// stream, as if the link were free, and the times for which that stream waited for events of other
  /// streams, such as collectives: as fixed times, whatever else delays the stream. While commands of
  /// streams are noted, it is the work since the last of them, without copies and waits for noted events.
  Work take_work() { return std::exchange(work_, {}); }
  /// Begins or ends to note the commands that take_stream_commands returns. An event counts as noted if it is
  /// recorded meanwhile.
  void note_stream_commands(bool noted);
  /// Returns the commands noted since the last call, in order. Streams and points are counted from the last
  /// call of note_stream_commands.
  std::vector<StreamCommand> take_stream_commands() { return std::exchange(commands_, {}); }
  /// Returns the same for all other streams together, without copies over the link.
  Work take_side_work() { return std::exchange(side_work_, {}); }

  /// Returns how many kernels, fills and copies the streams were given so far.
  std::int64_t commands_given() const { return commands_given_; }

  /// Returns the time by which copies made the legacy default stream finish later since the last call. No
  /// Work includes it.
  Nanoseconds take_compute_loss() { return std::exchange(compute_loss_, 0); }

  /// Sets all clocks back to zero. Streams and events stay, but no event counts as recorded.
  void restart(const Link& link);

  void create_stream(StreamId stream, StreamKind kind);
  void destroy_stream(StreamId stream);
  bool has_stream(StreamId stream) const { return streams_.contains(stream); }

  /// Runs something of that duration on the stream: a kernel, a memset, or a copy within device memory.
  TimeSpan run(StreamId id, Nanoseconds duration);
  /// Tells that the stream's last kernel was a collective of that duration.
  void note_collective(StreamId id, Nanoseconds duration);
  /// Returns the time for which the legacy default stream has run collectives, or has waited for streams that
  /// run them.
  Nanoseconds exposed_collectives() const { return exposed_collectives_; }
  /// Copies from or to pinned memory over the link, in the direction's only copy engine.
  TimeSpan copy(StreamId id, CopyDirection direction, Bytes bytes);
  /// Returns the bytes of pinned memory whose copy takes as long as that of `bytes` of pageable memory. The
  /// processor copies those from or to a pinned buffer of the driver.
  Bytes pinned_bytes_like(CopyDirection direction, Bytes pageable_bytes) const;

  void create_event(EventId event) { events_.emplace(event, std::nullopt); }
  void destroy_event(EventId event) { events_.erase(event); }
  bool has_event(EventId event) const { return events_.contains(event); }
  void record(EventId event, StreamId stream);
  /// Makes later work of the stream begin after the event's last record so far; never recorded: no wait.
  void wait(StreamId stream, EventId event);
  /// Returns the point of the event's last record; -1: it is not noted.
  std::int32_t point_of(EventId event) const;
  /// Returns the time at which the event's last record is reached; nullopt: never recorded.
  std::optional<Nanoseconds> event_time(EventId event) const;

  /// Returns true if the host's clock has reached the event's last record, or the end of the stream's work.
  bool is_reached(EventId event) const;
  bool is_done(StreamId stream) const;

  /// Accounts for a query of the event. A loop of queries is a wait, in which each takes the host `duration`.
  /// A single one takes no time: PyTorch's allocators make them when they have to, and which ones they make
  /// depends on what was reached before. In functional mode an event may be reached before its time; then the
  /// host reaches that time.
  void note_query(EventId event, bool is_reached, Nanoseconds duration);
  /// Makes the host wait.
  void synchronise_event(EventId event);
  void synchronise_stream(StreamId stream);
  void synchronise_device();

 private:
  struct Stream {
    StreamKind kind = StreamKind::kNonBlocking;
    Nanoseconds ready = 0;
    std::int32_t number = -1;         ///< among noted streams; -1: none yet
    bool has_copied = false;          ///< over the link
    bool follows_collective = false;  ///< it runs collectives, or has waited for a stream that does
  };
  struct Event {
    Nanoseconds time = 0;
    std::int32_t point = -1;                                ///< noted; -1: not
    bool is_of_copies = false, follows_collective = false;  ///< see Stream
  };

  Stream& stream_for_work(StreamId id);
  void lose_compute(Nanoseconds duration);
  void note(const Work& work);
  void note_wait(const Event& event);
  void note_host_wait(std::int32_t point);
  void note_command(StreamId stream, StreamCommand command);
  std::int32_t note_record(StreamId stream);
  Nanoseconds begin_on(const Stream& stream) const;
  void host_reaches(Nanoseconds time);

  Link link_;
  Work work_, side_work_;
  std::int64_t commands_given_ = 0;
  bool notes_commands_ = false;
  std::vector<StreamCommand> commands_;
  std::int32_t noted_streams_ = 0, noted_points_ = 0;
  Nanoseconds host_ = 0;
  LinkEngines engines_;
  std::unordered_map<StreamId, Stream> streams_;
  std::vector<StreamId> blocking_;  ///< streams that the legacy default stream waits for
  std::unordered_map<EventId, std::optional<Event>> events_;
  Nanoseconds exposed_collectives_ = 0;
  Nanoseconds compute_loss_ = 0;
  /// The last event that was queried and not reached, and when that query returned.
  std::pair<EventId, Nanoseconds> unreached_{};
  Nanoseconds destroyed_ready_ = 0;  ///< when the last destroyed stream finishes its work
};

}  // namespace offprof
