#include "engine/devices/virtual_gpu/state/virtual_time.h"

#include <algorithm>

#include "traces/base/check.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Work of a host wait until the compute stream is idle. Every wait of the host counts so, although some wait
/// for less, unless it is for a noted point.
constexpr Work kHostWaits = {0, 0, 0, 0};

}  // namespace

VirtualTime::VirtualTime(const Link& link) : link_(link) {
  create_stream(nullptr, StreamKind::kBlocking);
}

void VirtualTime::restart(const Link& link) {
  link_ = link;
  work_ = side_work_ = {};
  compute_loss_ = 0;
  unreached_ = {};
  note_stream_commands(false);
  engines_ = {};
  host_ = exposed_collectives_ = destroyed_ready_ = 0;
  for (auto& [id, stream] : streams_) stream = {.kind = stream.kind};
  for (auto& [id, recorded] : events_) recorded.reset();
}

void VirtualTime::note_stream_commands(bool noted) {
  notes_commands_ = noted;
  commands_.clear();
  noted_points_ = 0;
  noted_streams_ = 1;  // the compute stream is 0
  for (auto& [id, stream] : streams_) stream.number = id == nullptr ? 0 : -1;
  for (auto& [id, recorded] : events_)
    if (recorded) recorded->point = -1;
}

void VirtualTime::note_command(StreamId stream, StreamCommand command) {
  std::int32_t& number = streams_.at(stream).number;
  if (number < 0) number = noted_streams_++;
  command.stream = number;
  command.before = std::exchange(work_, {});
  commands_.push_back(command);
}

/// Notes the end of the stream's work so far as a point. Returns its number.
std::int32_t VirtualTime::note_record(StreamId stream) {
  note_command(stream, {.kind = StreamCommand::Kind::kRecord, .point = noted_points_});
  return noted_points_++;
}

/// Notes that the host waits for the point.
void VirtualTime::note_host_wait(std::int32_t point) {
  note_command(nullptr, {.kind = StreamCommand::Kind::kHostWait, .point = point});
}

void VirtualTime::create_stream(StreamId stream, StreamKind kind) {
  streams_[stream] = Stream{.kind = kind, .ready = host_};
  if (kind == StreamKind::kBlocking && stream != nullptr) blocking_.push_back(stream);
}

void VirtualTime::destroy_stream(StreamId stream) {
  const auto found = streams_.find(stream);
  OFFPROF_CHECK(found != streams_.end());
  destroyed_ready_ = std::max(destroyed_ready_, found->second.ready);
  streams_.erase(found);
  std::erase(blocking_, stream);
}

void VirtualTime::advance_host(Nanoseconds duration) {
  host_ += duration;
  note({duration, 0, duration});
}

void VirtualTime::hold_stream(StreamId stream, Nanoseconds until) {
  Nanoseconds& ready = stream_for_work(stream).ready;
  ready = std::max(ready, until);
}

TimeSpan VirtualTime::run(StreamId id, Nanoseconds duration) {
  ++commands_given_;
  Work& work = id == nullptr ? work_ : side_work_;
  work = then(work, {0, duration, duration, Work::kNoWait, duration});
  if (id != nullptr && notes_commands_)
    note_command(id, {.kind = StreamCommand::Kind::kKernel, .duration_ns = duration});
  Stream& stream = stream_for_work(id);
  const Nanoseconds begin = begin_on(stream);
  stream.ready = begin + duration;
  return {begin, stream.ready};
}

void VirtualTime::note_collective(StreamId id, Nanoseconds duration) {
  if (id == nullptr) {
    exposed_collectives_ += duration;
  } else {
    streams_.at(id).follows_collective = true;
    if (!commands_.empty() && commands_.back().kind == StreamCommand::Kind::kKernel)
      commands_.back().kind = StreamCommand::Kind::kCollective;
  }
}

TimeSpan VirtualTime::copy(StreamId id, CopyDirection direction, Bytes bytes) {
  ++commands_given_;
  Stream& stream = stream_for_work(id);
  if (notes_commands_) {
    const bool is_out = direction == CopyDirection::kD2h;
    const auto kind = is_out ? StreamCommand::Kind::kCopyOut : StreamCommand::Kind::kCopyIn;
    note_command(id, {.kind = kind, .bytes = bytes});
  } else if (id == nullptr) {
    const Nanoseconds alone = link_.of(direction).duration(bytes);
    work_ = then(work_, {0, alone, alone, Work::kNoWait, alone});
  }
  const auto [begin, end] = engines_.copy(link_, direction, bytes, begin_on(stream));
  stream.has_copied = true;
  stream.ready = end;
  if (id != nullptr) lose_compute(link_.of(direction).compute_loss(bytes));
  return {begin, end};
}

/// Lets the legacy default stream finish later because of a copy.
void VirtualTime::lose_compute(Nanoseconds duration) {
  if (duration == 0) return;
  Stream& computing = streams_.at(nullptr);
  computing.ready = begin_on(computing) + duration;
  compute_loss_ += duration;
}

Bytes VirtualTime::pinned_bytes_like(CopyDirection direction, Bytes pageable_bytes) const {
  // A core copies 13 GB/s to the host and 8 to 11 GB/s back beside an H100
  // (traces/recorded/h100/copies.json); assumed for all machines.
  constexpr double kBytesPerSecond = 12e9;
  const double link = link_.of(direction).bytes_per_second;
  return to_whole(static_cast<double>(pageable_bytes) * std::max(1.0, link / kBytesPerSecond));
}

void VirtualTime::record(EventId event, StreamId stream) {
  const Stream& recorded = stream_for_work(stream);
  const bool computes = stream == nullptr;
  events_.at(event) = {.time = begin_on(recorded),
                       .point = notes_commands_ ? note_record(stream) : -1,
                       .is_of_copies = !computes && recorded.has_copied,
                       .follows_collective = recorded.follows_collective};
}

void VirtualTime::wait(StreamId stream, EventId event) {
  const std::optional<Event> waited = events_.at(event);
  if (!waited) return;
  Stream& waiting = stream_for_work(stream);
  if (waited->point >= 0) note_command(stream, {.kind = StreamCommand::Kind::kWait, .point = waited->point});
  if (stream == nullptr) {
    note_wait(*waited);
  } else {
    waiting.follows_collective = waiting.follows_collective || waited->follows_collective;
  }
  waiting.ready = std::max(waiting.ready, waited->time);
}

/// Notes that the legacy default stream waits for the event. Waits for copies over the link are noted too,
/// but the stream does not count as busy meanwhile.
void VirtualTime::note_wait(const Event& event) {
  const Nanoseconds delay = event.time - begin_on(streams_.at(nullptr));
  if (delay <= 0) return;
  if (event.point < 0) work_ = then(work_, {0, delay, delay, Work::kNoWait, event.is_of_copies ? 0 : delay});
  if (event.follows_collective && !event.is_of_copies) exposed_collectives_ += delay;
}

std::int32_t VirtualTime::point_of(EventId event) const {
  const std::optional<Event>& recorded = events_.at(event);
  return recorded ? recorded->point : -1;
}

std::optional<Nanoseconds> VirtualTime::event_time(EventId event) const {
  const std::optional<Event>& recorded = events_.at(event);
  return recorded ? std::optional(recorded->time) : std::nullopt;
}

bool VirtualTime::is_reached(EventId event) const {
  return event_time(event).value_or(0) <= host_;
}

bool VirtualTime::is_done(StreamId stream) const {
  return streams_.at(stream).ready <= host_;
}

void VirtualTime::note_query(EventId event, bool is_reached, Nanoseconds duration) {
  const bool is_loop = unreached_ == std::pair(event, host_);
  if (is_reached && (is_loop || event_time(event).value_or(0) > host_)) return synchronise_event(event);
  if (is_reached) return;
  if (is_loop) advance_host(duration);
  unreached_ = {event, host_};
}

void VirtualTime::synchronise_event(EventId event) {
  const std::optional<Event>& waited = events_.at(event);
  const Nanoseconds time = waited ? waited->time : 0;
  const bool is_noted = notes_commands_ && waited && waited->point >= 0;
  if (is_noted)
    note_host_wait(waited->point);
  else if (!notes_commands_ || time > host_)
    note(kHostWaits);
  host_reaches(time);
}

void VirtualTime::synchronise_stream(StreamId stream) {
  if (stream == nullptr || !notes_commands_)
    note(kHostWaits);
  else
    note_host_wait(note_record(stream));
  host_reaches(stream_for_work(stream).ready);
}

void VirtualTime::synchronise_device() {
  if (notes_commands_)
    note_command(nullptr, {.kind = StreamCommand::Kind::kDeviceWait});
  else
    note(kHostWaits);
  host_reaches(destroyed_ready_);
  for (const auto& [id, stream] : streams_) host_reaches(stream.ready);
}

// Returns the stream for new work. The legacy default stream and the blocking streams wait for each other
// before any work.
VirtualTime::Stream& VirtualTime::stream_for_work(StreamId id) {
  Stream& stream = streams_.at(id);
  if (stream.kind == StreamKind::kNonBlocking) return stream;
  if (id != nullptr) {
    stream.ready = std::max(stream.ready, streams_.at(nullptr).ready);
    return stream;
  }
  for (const StreamId other : blocking_) stream.ready = std::max(stream.ready, streams_.at(other).ready);
  return stream;
}

void VirtualTime::note(const Work& work) {
  work_ = then(work_, work);
  side_work_ = then(side_work_, work);
}

Nanoseconds VirtualTime::begin_on(const Stream& stream) const {
  return std::max(stream.ready, host_);
}

void VirtualTime::host_reaches(Nanoseconds time) {
  host_ = std::max(host_, time);
}

}  // namespace offprof
