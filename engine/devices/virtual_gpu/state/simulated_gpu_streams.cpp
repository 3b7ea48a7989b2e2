#include <atomic>

#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

namespace offprof {
namespace {

// Host time of a query of a stream or an event, so that a loop of queries ends.
constexpr Nanoseconds kQueryNs = 1000;

}  // namespace

StreamId SimulatedGpu::create_stream(StreamKind kind) {
  const Lock lock(mutex_);
  const StreamId stream = next_id();
  streams_.emplace(stream, kind);
  time_.create_stream(stream, kind);
  if (order_) order_->stream_created(stream, kind);
  if (functional_mode_) functional_mode_->stream_created(stream, kind);
  return stream;
}

GpuStatus SimulatedGpu::destroy_stream(StreamId stream) {
  const Lock lock(mutex_);
  if (streams_.erase(stream) == 0) return GpuStatus::kInvalidHandle;
  kernel_streams_.erase(stream);
  time_.destroy_stream(stream);
  if (order_) order_->stream_destroyed(stream);
  if (functional_mode_) functional_mode_->stream_destroyed(stream);
  return GpuStatus::kOk;
}

bool SimulatedGpu::has_stream(StreamId stream) const {
  const Lock lock(mutex_);
  return time_.has_stream(stream);
}

GpuStatus SimulatedGpu::query_stream(StreamId stream) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  const bool is_done = functional_mode_ ? functional_mode_->query_stream(stream) : time_.is_done(stream);
  const Nanoseconds since = time_.host_time();
  if (is_done) wait_for_stream(stream);
  if (!is_done) time_.advance_host(kQueryNs);
  tell_waited(WaitedFor::kStream, stream, since, is_done);
  return is_done ? GpuStatus::kOk : GpuStatus::kNotReady;
}

GpuStatus SimulatedGpu::synchronise_stream(StreamId stream) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  const Nanoseconds since = time_.host_time();
  wait_for_stream(stream);
  tell_waited(WaitedFor::kStream, stream, since);
  return GpuStatus::kOk;
}

void SimulatedGpu::synchronise_device() {
  const Lock lock(mutex_);
  const Nanoseconds since = time_.host_time();
  wait_for_device();
  tell_waited(WaitedFor::kDevice, nullptr, since);
}

void SimulatedGpu::wait_for_stream(StreamId stream) {
  time_.synchronise_stream(stream);
  if (order_) order_->stream_synchronised(stream);
  if (functional_mode_) functional_mode_->synchronise_stream(stream);
}

void SimulatedGpu::wait_for_device() {
  time_.synchronise_device();
  if (order_) order_->device_synchronised();
  if (functional_mode_) functional_mode_->synchronise_device();
}

void SimulatedGpu::tell_waited(WaitedFor what, const void* id, Nanoseconds since, bool is_done) const {
  if (GpuObserver* told = observer()) told->on_host_waits(what, id, {since, time_.host_time()}, is_done);
}

EventId SimulatedGpu::create_event(bool keeps_time) {
  const Lock lock(mutex_);
  const EventId event = next_id();
  if (!keeps_time) timeless_events_.insert(event);
  time_.create_event(event);
  if (order_) order_->event_created(event);
  return event;
}

GpuStatus SimulatedGpu::destroy_event(EventId event) {
  const Lock lock(mutex_);
  if (!time_.has_event(event)) return GpuStatus::kInvalidHandle;
  time_.destroy_event(event);
  timeless_events_.erase(event);
  if (order_) order_->event_destroyed(event);
  if (functional_mode_) functional_mode_->event_destroyed(event);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::record_event(EventId event, StreamId stream) {
  const Lock lock(mutex_);
  if (!time_.has_event(event) || !time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  time_.record(event, stream);
  if (GpuObserver* told = observer()) told->on_event_recorded(stream, event);
  if (order_) order_->event_recorded(event, stream);
  if (functional_mode_) functional_mode_->record(event, stream);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::wait_event(StreamId stream, EventId event) {
  const Lock lock(mutex_);
  if (!time_.has_event(event) || !time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  time_.wait(stream, event);
  if (GpuObserver* told = observer()) told->on_stream_waits(stream, event, time_.host_time());
  if (order_) order_->stream_waits(stream, event);
  if (functional_mode_) functional_mode_->wait(stream, event);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::wait_value(StreamId stream, const std::uint32_t* word, std::uint32_t value) {
  const Lock lock(mutex_);
  if (!time_.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (place_of(word) != MemoryPlace::kPinned) return GpuStatus::kInvalidValue;
  if (!functional_mode_) return GpuStatus::kOk;
  functional_mode_->wait_until(stream, [word = const_cast<std::uint32_t*>(word), value] {
    return static_cast<std::int32_t>(std::atomic_ref(*word).load(std::memory_order_acquire) - value) >= 0;
  });
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::query_event(EventId event) {
  const Lock lock(mutex_);
  if (!time_.has_event(event)) return GpuStatus::kInvalidHandle;
  const bool is_reached = functional_mode_ ? functional_mode_->query_event(event) : time_.is_reached(event);
  const Nanoseconds since = time_.host_time();
  if (!is_reached) {
    time_.advance_host(kQueryNs);
    tell_waited(WaitedFor::kEvent, event, since, false);
    return GpuStatus::kNotReady;
  }
  time_.synchronise_event(event);
  tell_waited(WaitedFor::kEvent, event, since);
  if (order_ && time_.event_time(event)) order_->event_synchronised(event);
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::synchronise_event(EventId event) {
  const Lock lock(mutex_);
  if (!time_.has_event(event)) return GpuStatus::kInvalidHandle;
  const Nanoseconds since = time_.host_time();
  time_.synchronise_event(event);
  tell_waited(WaitedFor::kEvent, event, since);
  if (order_) order_->event_synchronised(event);
  if (functional_mode_) functional_mode_->synchronise_event(event);
  return GpuStatus::kOk;
}

/// Records a point as an event that takes no time and that no CUDA call knows.
void SimulatedGpu::note_point(const void* point, void* stream) {
  const Lock lock(mutex_);
  if (order_) order_->event_created(point);
  if (order_) order_->event_recorded(point, stream);
  if (functional_mode_) functional_mode_->record(point, stream);
}

void SimulatedGpu::host_saw_point(const void* point) {
  const Lock lock(mutex_);
  if (order_) order_->event_synchronised(point);
  if (functional_mode_) functional_mode_->synchronise_event(point);
}

void SimulatedGpu::forget_point(const void* point) {
  const Lock lock(mutex_);
  if (order_) order_->event_destroyed(point);
  if (functional_mode_) functional_mode_->event_destroyed(point);
}

GpuStatus SimulatedGpu::elapsed_time(Nanoseconds* elapsed, EventId from, EventId to) {
  const Lock lock(mutex_);
  if (!time_.has_event(from) || !time_.has_event(to)) return GpuStatus::kInvalidHandle;
  if (timeless_events_.contains(from) || timeless_events_.contains(to)) return GpuStatus::kInvalidHandle;
  if (order_) order_->event_time_asked(from);
  if (order_) order_->event_time_asked(to);
  const auto begin = time_.event_time(from), end = time_.event_time(to);
  if (!begin || !end) return GpuStatus::kInvalidHandle;
  if (!time_.is_reached(from) || !time_.is_reached(to)) return GpuStatus::kNotReady;
  *elapsed = *end - *begin;
  return GpuStatus::kOk;
}

}  // namespace offprof
