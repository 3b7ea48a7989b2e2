#include "engine/devices/virtual_gpu/state/gpu_streams.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

// Host time of a query of a stream or an event, so that a loop of queries ends.
constexpr Nanoseconds kQueryNs = 1000;

constexpr std::uintptr_t kIdStep = 16;

}  // namespace

StreamId GpuStreams::create_stream(StreamKind kind) {
  const GpuLock lock(state_.mutex);
  const StreamId stream = next_id();
  streams_.emplace(stream, kind);
  state_.time.create_stream(stream, kind);
  introduce(stream, kind);
  return stream;
}

void GpuStreams::introduce(StreamId stream, StreamKind kind) {
  if (state_.races) state_.races->stream_created(stream, kind);
  if (state_.functional_mode) state_.functional_mode->stream_created(stream, kind);
}

void GpuStreams::restart() {
  kernel_streams_.clear();
  for (const auto& [stream, kind] : streams_) introduce(stream, kind);
}

const void* GpuStreams::next_id() {
  return reinterpret_cast<const void*>(last_id_ += kIdStep);  // NOLINT(performance-no-int-to-ptr): a handle
}

GpuStatus GpuStreams::destroy_stream(StreamId stream) {
  const GpuLock lock(state_.mutex);
  if (streams_.erase(stream) == 0) return GpuStatus::kInvalidHandle;
  kernel_streams_.erase(stream);
  state_.time.destroy_stream(stream);
  if (state_.races) state_.races->stream_destroyed(stream);
  if (state_.functional_mode) state_.functional_mode->stream_destroyed(stream);
  return GpuStatus::kOk;
}

bool GpuStreams::has_stream(StreamId stream) const {
  const GpuLock lock(state_.mutex);
  return state_.time.has_stream(stream);
}

GpuStatus GpuStreams::query_stream(StreamId stream) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  const bool is_done =
      state_.functional_mode ? state_.functional_mode->query_stream(stream) : state_.time.is_done(stream);
  const Nanoseconds since = state_.time.host_time();
  if (is_done) state_.wait_for_stream(stream);
  if (!is_done) state_.time.advance_host(kQueryNs);
  report_wait(WaitedFor::kStream, stream, since, is_done);
  return is_done ? GpuStatus::kOk : GpuStatus::kNotReady;
}

GpuStatus GpuStreams::synchronise_stream(StreamId stream) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  const Nanoseconds since = state_.time.host_time();
  state_.wait_for_stream(stream);
  report_wait(WaitedFor::kStream, stream, since);
  return GpuStatus::kOk;
}

void GpuStreams::synchronise_device() {
  const GpuLock lock(state_.mutex);
  const Nanoseconds since = state_.time.host_time();
  state_.wait_for_device();
  report_wait(WaitedFor::kDevice, nullptr, since);
}

void GpuStreams::report_wait(WaitedFor what, const void* id, Nanoseconds since, bool is_done) const {
  if (GpuObserver* observer = state_.observer)
    observer->on_host_waits(what, id, {since, state_.time.host_time()}, is_done);
}

EventId GpuStreams::create_event(bool keeps_time) {
  const GpuLock lock(state_.mutex);
  const EventId event = next_id();
  if (!keeps_time) timeless_events_.insert(event);
  state_.time.create_event(event);
  if (state_.races) state_.races->event_created(event);
  return event;
}

GpuStatus GpuStreams::destroy_event(EventId event) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event)) return GpuStatus::kInvalidHandle;
  state_.time.destroy_event(event);
  timeless_events_.erase(event);
  state_.watched_ends.event_destroyed(event);
  if (state_.races) state_.races->event_destroyed(event);
  if (state_.functional_mode) state_.functional_mode->event_destroyed(event);
  return GpuStatus::kOk;
}

GpuStatus GpuStreams::record_event(EventId event, StreamId stream, const void* caller) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event) || !state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  state_.time.record(event, stream);
  state_.requested_free.event_recorded(caller, event, state_.time.point_of(event));
  state_.watched_ends.event_recorded(event, stream, state_.time.event_time(event).value_or(0),
                                     WatchedEnds::Clock::now());
  if (GpuObserver* observer = state_.observer) observer->on_event_recorded(stream, event);
  if (state_.races) state_.races->event_recorded(event, stream);
  if (state_.functional_mode) state_.functional_mode->record(event, stream);
  return GpuStatus::kOk;
}

GpuStatus GpuStreams::wait_event(StreamId stream, EventId event) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event) || !state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  state_.time.wait(stream, event);
  state_.watched_ends.event_waited_for(event);
  if (GpuObserver* observer = state_.observer)
    observer->on_stream_waits(stream, event, state_.time.host_time());
  if (state_.races) state_.races->stream_waits(stream, event);
  if (state_.functional_mode) state_.functional_mode->wait(stream, event);
  return GpuStatus::kOk;
}

GpuStatus GpuStreams::wait_value(StreamId stream, const std::uint32_t* word, std::uint32_t value) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (memory_.place_of(word) != MemoryPlace::kPinned) return GpuStatus::kInvalidValue;
  if (!state_.functional_mode) return GpuStatus::kOk;
  state_.functional_mode->wait_until(stream, [word = const_cast<std::uint32_t*>(word), value] {
    return static_cast<std::int32_t>(std::atomic_ref(*word).load(std::memory_order_acquire) - value) >= 0;
  });
  return GpuStatus::kOk;
}

GpuStatus GpuStreams::query_event(EventId event) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event)) return GpuStatus::kInvalidHandle;
  const bool is_reached =
      state_.functional_mode ? state_.functional_mode->query_event(event) : state_.time.is_reached(event);
  const Nanoseconds since = state_.time.host_time();
  if (state_.functional_mode || !state_.requested_free.is_of_allocator(event))
    state_.time.note_query(event, is_reached, kQueryNs);
  report_wait(WaitedFor::kEvent, event, since, is_reached);
  if (!is_reached) return GpuStatus::kNotReady;
  if (state_.races && state_.time.event_time(event)) state_.races->event_synchronised(event);
  return GpuStatus::kOk;
}

GpuStatus GpuStreams::peek_event(EventId event) const {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event)) return GpuStatus::kInvalidHandle;
  const bool is_hidden =
      state_.watched_ends.hides(event, std::this_thread::get_id(), WatchedEnds::Clock::now());
  return !is_hidden && state_.time.is_reached(event) ? GpuStatus::kOk : GpuStatus::kNotReady;
}

void GpuStreams::note_watchdog() const {
  const GpuLock lock(state_.mutex);
  if (state_.watched_ends.has_told(std::this_thread::get_id())) state_.watchdog_told.notify_all();
}

GpuStatus GpuStreams::synchronise_event(EventId event) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(event)) return GpuStatus::kInvalidHandle;
  const Nanoseconds since = state_.time.host_time();
  state_.time.synchronise_event(event);
  report_wait(WaitedFor::kEvent, event, since);
  if (state_.races) state_.races->event_synchronised(event);
  if (state_.functional_mode) state_.functional_mode->synchronise_event(event);
  return GpuStatus::kOk;
}

/// Records a point as an event that takes no time and that no CUDA call knows.
void GpuStreams::note_point(const void* point, StreamId stream) {
  const GpuLock lock(state_.mutex);
  if (state_.races) state_.races->event_created(point);
  if (state_.races) state_.races->event_recorded(point, stream);
  if (state_.functional_mode) state_.functional_mode->record(point, stream);
}

void GpuStreams::host_saw_point(const void* point) {
  const GpuLock lock(state_.mutex);
  if (state_.races) state_.races->event_synchronised(point);
  if (state_.functional_mode) state_.functional_mode->synchronise_event(point);
}

void GpuStreams::forget_point(const void* point) {
  const GpuLock lock(state_.mutex);
  if (state_.races) state_.races->event_destroyed(point);
  if (state_.functional_mode) state_.functional_mode->event_destroyed(point);
}

GpuStatus GpuStreams::elapsed_time(Nanoseconds* elapsed, EventId from, EventId to) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_event(from) || !state_.time.has_event(to)) return GpuStatus::kInvalidHandle;
  if (timeless_events_.contains(from) || timeless_events_.contains(to)) return GpuStatus::kInvalidHandle;
  if (state_.races) state_.races->event_time_asked(from);
  if (state_.races) state_.races->event_time_asked(to);
  const auto begin = state_.time.event_time(from), end = state_.time.event_time(to);
  if (!begin || !end) return GpuStatus::kInvalidHandle;
  if (!state_.time.is_reached(from) || !state_.time.is_reached(to)) return GpuStatus::kNotReady;
  *elapsed = *end - *begin;
  return GpuStatus::kOk;
}

Nanoseconds GpuStreams::event_time(EventId event) {
  const GpuLock lock(state_.mutex);
  const auto time = state_.time.has_event(event) ? state_.time.event_time(event) : std::nullopt;
  if (time) return *time;
  if (!state_.races)
    throw environment_error("the time of an event was queried, but the event was never recorded",
                            "run with --check-streams to see which event; this is a bug in offprof");
  state_.races->event_time_asked(event);
  return state_.time.host_time();
}

GpuStatus GpuStreams::call_host(StreamId stream, std::function<void()> function) {
  {
    const GpuLock lock(state_.mutex);
    if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
    if (state_.functional_mode) {
      state_.functional_mode->call(stream, std::move(function));
      return GpuStatus::kOk;
    }
  }
  // The function does not wait, since nothing it could read is ever computed. It may take the lock.
  function();
  return GpuStatus::kOk;
}

void GpuStreams::note_kernel(StreamId stream) {
  if (state_.functional_mode) kernel_streams_.insert(stream);
}

}  // namespace offprof
