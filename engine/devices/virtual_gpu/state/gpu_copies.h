#pragma once

#include <vector>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_memory.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "engine/devices/virtual_gpu/state/gpu_streams.h"
#include "traces/base/units.h"

namespace offprof {

/// A copy as cudaMemcpy2D describes it; a plain copy is one row.
struct CopyRows {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;  ///< bytes of a row
  Bytes rows = 1;
  Bytes to_pitch = 0, from_pitch = 0;
};

/// Behaviour of a call: it returns at once, or waits until its work is done.
enum class HostWaits { kNever, kUntilDone };

/// Copies and memsets of the virtual GPU. In functional mode they move bytes. Otherwise they carry
/// SmallValues, and zeros where a value is not known, since a model may read a value back for a decision.
class GpuCopies {
 public:
  /// All arguments must outlive it.
  GpuCopies(ExecutionState& execution, const GpuMemory& memory, const GpuStreams& streams)
      : state_(execution), memory_(memory), streams_(streams) {}

  /// cudaMemcpy2DAsync. The host also waits for copies from or to pageable memory, as in CUDA.
  GpuStatus copy(StreamId stream, const CopyRows& rows, HostWaits host_waits);
  /// cudaMemsetAsync of device memory.
  GpuStatus set(StreamId stream, void* to, int value, Bytes bytes, HostWaits host_waits);

 private:
  void copy_on_host(StreamId stream, const CopyRows& rows);
  std::vector<char> answer_of(Bytes bytes) const;
  void carry_value(CopyEnd to, CopyEnd from, Bytes bytes);
  void copy_row(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes, bool is_staged);
  void report(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan span) const;
  bool reads_back_a_value(StreamId stream, CopyEnd to, CopyEnd from, Bytes bytes) const;
  TimeSpan time_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes);
  Nanoseconds memory_duration(Bytes bytes) const;

  ExecutionState& state_;
  const GpuMemory& memory_;
  const GpuStreams& streams_;
};

}  // namespace offprof
