#include "engine/devices/virtual_gpu/state/virtual_time.h"

#include <algorithm>

#include "traces/base/check.h"

namespace offprof {
namespace {

/// Work record of a host wait until the stream is idle. Every wait of the host is recorded so, although some
/// wait for less.
constexpr Work kHostWaits = {0, 0, 0, 0};

}  // namespace

VirtualTime::VirtualTime(const Link& link) : link_(link) {
  create_stream(nullptr, StreamKind::kBlocking);
}

void VirtualTime::restart(const Link& link) {
  link_ = link;
  work_ = side_work_ = {};
  host_ = d2h_ready_ = h2d_ready_ = destroyed_ready_ = 0;
  for (auto& [id, stream] : streams_) stream.ready = 0;
  for (auto& [id, time] : events_) time.reset();
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
  Work& work = id == nullptr ? work_ : side_work_;
  work = then(work, {0, duration, duration, Work::kNoWait, duration});
  Stream& stream = stream_for_work(id);
  const Nanoseconds begin = begin_on(stream);
  stream.ready = begin + duration;
  return {begin, stream.ready};
}

TimeSpan VirtualTime::copy(StreamId id, CopyDirection direction, Bytes bytes) {
  const bool out = direction == CopyDirection::kD2h;
  Nanoseconds& engine_ready = out ? d2h_ready_ : h2d_ready_;
  Stream& stream = stream_for_work(id);
  const Nanoseconds begin = std::max(begin_on(stream), engine_ready);
  const Nanoseconds duration = (out ? link_.d2h : link_.h2d).duration(bytes);
  if (id == nullptr) work_ = then(work_, {0, duration, duration, Work::kNoWait, duration});
  stream.ready = begin + duration;
  engine_ready = stream.ready;
  return {begin, stream.ready};
}

void VirtualTime::record(EventId event, StreamId stream) {
  events_.at(event) = begin_on(stream_for_work(stream));
}

void VirtualTime::wait(StreamId stream, EventId event) {
  const std::optional<Nanoseconds> time = events_.at(event);
  if (!time) return;
  Nanoseconds& ready = stream_for_work(stream).ready;
  ready = std::max(ready, *time);
}

std::optional<Nanoseconds> VirtualTime::event_time(EventId event) const {
  return events_.at(event);
}

bool VirtualTime::is_reached(EventId event) const {
  return events_.at(event).value_or(0) <= host_;
}

bool VirtualTime::is_done(StreamId stream) const {
  return streams_.at(stream).ready <= host_;
}

void VirtualTime::synchronise_event(EventId event) {
  note(kHostWaits);
  host_reaches(events_.at(event).value_or(0));
}

void VirtualTime::synchronise_stream(StreamId stream) {
  note(kHostWaits);
  host_reaches(stream_for_work(stream).ready);
}

void VirtualTime::synchronise_device() {
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
