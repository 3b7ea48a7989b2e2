#pragma once

#include <cstdint>
#include <string_view>

#include "simulator/virtual_gpu/kernel_cost.h"
#include "simulator/virtual_gpu/stream_ids.h"
#include "simulator/virtual_gpu/stream_order.h"
#include "simulator/virtual_gpu/virtual_time.h"
#include "traces/units.h"

namespace offprof {

enum class CallDomain : std::uint8_t { kRuntime, kDriver };

/// A function of the CUDA API. `name` is as CUPTI has it, with a version: `cudaLaunchKernel_v7000`.
struct ApiCall {
  CallDomain domain = CallDomain::kRuntime;
  std::uint32_t id = 0;  ///< CUPTI's number of it
  const char* name = "";
};

/// What the host waits for.
enum class WaitedFor : std::uint8_t { kEvent, kStream, kDevice };

/// Told of all that the virtual GPU is asked for, and when it does it, on the virtual clocks: what a tracer
/// of a GPU learns. Work is told of on the thread that asks for it, between the beginning and the end of the
/// call, under the GPU's lock: an observer must not call back.
class GpuObserver {
 public:
  virtual ~GpuObserver() = default;

  virtual void on_call_begin() = 0;
  virtual void on_call_end(const ApiCall& call, TimeSpan host) = 0;

  /// `symbol`: the kernel's name, mangled where the compiler did.
  virtual void on_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol,
                         TimeSpan time) = 0;
  virtual void on_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan time) = 0;
  virtual void on_set(StreamId stream, int value, Bytes bytes, TimeSpan time) = 0;
  virtual void on_event_recorded(StreamId stream, EventId event) = 0;
  virtual void on_stream_waits(StreamId stream, EventId event, Nanoseconds host) = 0;
  /// The host waited, or asked whether it need: then `is_done` says what it was told. `id`: of the stream or
  /// the event.
  virtual void on_host_waits(WaitedFor what, const void* id, TimeSpan host, bool is_done) = 0;
  /// Memory was taken from the driver (bytes > 0) or given back (bytes < 0).
  virtual void on_memory(MemoryPlace place, const void* address, Bytes bytes, Nanoseconds host) = 0;
};

}  // namespace offprof
