#pragma once

#include <cstdint>
#include <string_view>

#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/races/stream_races.h"
#include "engine/devices/virtual_gpu/state/virtual_time.h"
#include "traces/base/units.h"

namespace offprof {

enum class CallDomain : std::uint8_t { kRuntime, kDriver };

/// A function of the CUDA API. `name` is CUPTI's name, with a version: `cudaLaunchKernel_v7000`.
struct ApiCall {
  CallDomain domain = CallDomain::kRuntime;
  std::uint32_t id = 0;  ///< CUPTI's number of the function
  const char* name = "";
};

/// Kinds of object that the host waits for.
enum class WaitedFor : std::uint8_t { kEvent, kStream, kDevice };

/// Receives every call to the virtual GPU and the times of its work on the virtual clocks: the information
/// that a GPU tracer gets. The methods for work are called on the thread that gives the work, between the
/// beginning and the end of the call, under the GPU's lock. An observer must not call back.
class GpuObserver {
 public:
  virtual ~GpuObserver() = default;

  virtual void on_call_begin() = 0;
  virtual void on_call_end(const ApiCall& call, TimeSpan host) = 0;

  /// `symbol` is the kernel's name, mangled if the compiler mangled it.
  virtual void on_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol,
                         TimeSpan time) = 0;
  virtual void on_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan time) = 0;
  virtual void on_set(StreamId stream, int value, Bytes bytes, TimeSpan time) = 0;
  virtual void on_event_recorded(StreamId stream, EventId event) = 0;
  virtual void on_stream_waits(StreamId stream, EventId event, Nanoseconds host) = 0;
  /// The host waited, or queried for the end of the work; `is_done` is the answer to the query. `id` is that
  /// of the stream or the event.
  virtual void on_host_waits(WaitedFor what, const void* id, TimeSpan host, bool is_done) = 0;
  /// Memory was allocated by the driver (bytes > 0) or returned to it (bytes < 0).
  virtual void on_memory(MemoryPlace place, const void* address, Bytes bytes, Nanoseconds host) = 0;
};

}  // namespace offprof
