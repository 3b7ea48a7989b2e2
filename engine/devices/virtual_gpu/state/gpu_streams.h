#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_set>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_memory.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "traces/base/units.h"

namespace offprof {

/// Streams and events of the virtual GPU, and how the host and the streams wait for each other. Handles are
/// opaque and are never reused; nullptr is the legacy default stream. An unknown handle gives kInvalidHandle.
class GpuStreams {
 public:
  /// Both arguments must outlive it.
  GpuStreams(ExecutionState& execution, const GpuMemory& memory) : state_(execution), memory_(memory) {}

  StreamId create_stream(StreamKind kind);
  GpuStatus destroy_stream(StreamId stream);
  bool has_stream(StreamId stream) const;
  GpuStatus query_stream(StreamId stream);
  GpuStatus synchronise_stream(StreamId stream);
  void synchronise_device();

  /// Creates an event. An event that keeps no time has no elapsed time.
  EventId create_event(bool keeps_time);
  GpuStatus destroy_event(EventId event);
  /// `caller` is the address of the code that records it.
  GpuStatus record_event(EventId event, StreamId stream, const void* caller = nullptr);
  GpuStatus wait_event(StreamId stream, EventId event);
  GpuStatus query_event(EventId event);
  /// Looks whether an event is reached, on a watchdog's thread: no clock advances, and nobody learns of it.
  /// See WatchedEnds.
  GpuStatus peek_event(EventId event) const;
  /// The watchdog that runs on this thread has told PyTorch what it saw.
  void note_watchdog() const;
  GpuStatus synchronise_event(EventId event);
  /// Sets `*elapsed` if the status is kOk. Returns kInvalidHandle if one of the events was never recorded or
  /// keeps no time.
  GpuStatus elapsed_time(Nanoseconds* elapsed, EventId from, EventId to);
  /// See VirtualGpu::event_time.
  Nanoseconds event_time(EventId event);

  /// Makes later work of the stream wait until the word in pinned memory has reached `value`, both counted
  /// modulo 2^32. Outside functional mode it does not wait.
  GpuStatus wait_value(StreamId stream, const std::uint32_t* word, std::uint32_t value);
  /// Calls `function` on the host when the stream reaches it, or at once outside functional mode.
  GpuStatus call_host(StreamId stream, std::function<void()> function);

  /// Points in a stream; see VirtualGpu.
  void note_point(const void* point, StreamId stream);
  void host_saw_point(const void* point);
  void forget_point(const void* point);

  /// Introduces the streams to a race checker and a functional mode that are new. The caller holds the lock.
  void restart();
  /// Records that the stream was given a kernel, in functional mode, or returns whether it was. The caller
  /// holds the lock.
  void note_kernel(StreamId stream);
  bool has_kernels(StreamId stream) const { return kernel_streams_.contains(stream); }

 private:
  const void* next_id();
  void introduce(StreamId stream, StreamKind kind);
  void report_wait(WaitedFor what, const void* id, Nanoseconds since, bool is_done = true) const;

  ExecutionState& state_;
  const GpuMemory& memory_;
  std::map<StreamId, StreamKind> streams_;
  std::unordered_set<StreamId> kernel_streams_;
  std::unordered_set<EventId> timeless_events_;
  std::uintptr_t last_id_ = 1 << 16;
};

}  // namespace offprof
