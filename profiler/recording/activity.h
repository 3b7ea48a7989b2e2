#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Kind of memory at one end of a copy, or that was set or allocated.
enum class GpuMemoryKind : std::uint8_t { kUnknown, kPageable, kPinned, kDevice, kArray, kManaged };

enum class StreamWorkKind : std::uint8_t { kKernel, kCopy, kSet };

/// A kernel, a copy or a memset on a stream of the GPU. All times here are on the host's steady clock.
struct StreamWork {
  StreamWorkKind kind = StreamWorkKind::kKernel;
  GpuMemoryKind from = GpuMemoryKind::kUnknown;  ///< of copies
  GpuMemoryKind to = GpuMemoryKind::kUnknown;    ///< of copies, and the memory written by a memset
  std::int32_t name = -1;                        ///< of kernels: index in GpuActivity::names; mangled
  std::uint32_t stream = 0;                      ///< CUPTI's number of the stream
  std::uint32_t correlation = 0;                 ///< the call that requested the work
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  Bytes bytes = 0;                              ///< of copies and memsets
  std::array<std::int32_t, 3> grid{}, block{};  ///< of kernels
};

/// A call of the CUDA runtime, or a call of the driver that launches a kernel.
struct CudaCall {
  std::int32_t name = -1;  ///< index in GpuActivity::names: `cudaLaunchKernel`, ...
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

enum class GpuWaitKind : std::uint8_t { kUnknown, kEvent, kStreamForEvent, kStream, kContext };

/// A wait of the host or (kStreamForEvent) of a stream.
struct GpuWait {
  GpuWaitKind kind = GpuWaitKind::kUnknown;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;
  std::uint32_t correlation = 0;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

/// A record of an event on a stream.
struct EventRecorded {
  std::uint32_t event = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
};

/// The cause of the call with this correlation: an id that was passed to GpuTracer::push.
struct CausedBy {
  std::uint32_t correlation = 0;
  std::uint64_t id = 0;
};

/// Time that tracing itself took.
struct TracingOverhead {
  std::string_view what;  ///< `buffer flush`, `instrumentation`, ...
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

/// Memory was allocated by the driver (bytes > 0) or returned to it (bytes < 0).
struct DriverMemory {
  GpuMemoryKind kind = GpuMemoryKind::kUnknown;
  std::uint64_t address = 0;
  Bytes bytes = 0;
  Nanoseconds at_ns = 0;
};

/// Activity of a GPU while it was traced. Each list is in the order of its times.
struct GpuActivity {
  std::vector<std::string> names;
  std::vector<StreamWork> work;
  std::vector<CudaCall> calls;
  std::vector<GpuWait> waits;
  std::vector<EventRecorded> events;  ///< in the order of their correlations
  std::vector<CausedBy> causes;       ///< in the order of their correlations
  std::vector<TracingOverhead> overheads;
  std::vector<DriverMemory> memory;

  std::size_t dropped_records = 0;     ///< no buffer was free; their contents are missing here
  std::size_t untimed_records = 0;     ///< left out: CUPTI had no times for them
  std::size_t other_records = 0;       ///< left out: of kinds that were not requested
  std::size_t unreadable_buffers = 0;  ///< buffers whose rest could not be read
};

}  // namespace offprof
