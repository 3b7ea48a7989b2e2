#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// Where one end of a copy lies, or what was set or allocated.
enum class GpuMemoryKind : std::uint8_t { kUnknown, kPageable, kPinned, kDevice, kArray, kManaged };

enum class StreamWorkKind : std::uint8_t { kKernel, kCopy, kSet };

/// A kernel, a copy or a set on a stream of the GPU. All times here are on the host's steady clock.
struct StreamWork {
  StreamWorkKind kind = StreamWorkKind::kKernel;
  GpuMemoryKind from = GpuMemoryKind::kUnknown;  ///< copies
  GpuMemoryKind to = GpuMemoryKind::kUnknown;    ///< copies; of a set, what was set
  std::int32_t name = -1;                        ///< kernels: index in GpuActivity::names; mangled
  std::uint32_t stream = 0;                      ///< as CUPTI counts streams
  std::uint32_t correlation = 0;                 ///< the call that asked for it
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  Bytes bytes = 0;                              ///< copies and sets
  std::array<std::int32_t, 3> grid{}, block{};  ///< kernels
};

/// A call of the CUDA runtime, or one of the driver that launches a kernel.
struct CudaCall {
  std::int32_t name = -1;  ///< index in GpuActivity::names: `cudaLaunchKernel`, ...
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

enum class GpuWaitKind : std::uint8_t { kUnknown, kEvent, kStreamForEvent, kStream, kContext };

/// Somebody waited: the host, or (kStreamForEvent) a stream.
struct GpuWait {
  GpuWaitKind kind = GpuWaitKind::kUnknown;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;
  std::uint32_t correlation = 0;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

/// An event was recorded on a stream.
struct EventRecorded {
  std::uint32_t event = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
};

/// The call with this correlation was made for this: an id that GpuTracer::push was given.
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

/// Memory was taken from the driver (bytes > 0) or given back (bytes < 0).
struct DriverMemory {
  GpuMemoryKind kind = GpuMemoryKind::kUnknown;
  std::uint64_t address = 0;
  Bytes bytes = 0;
  Nanoseconds at_ns = 0;
};

/// What a GPU did while it was traced; each list in the order of its times.
struct GpuActivity {
  std::vector<std::string> names;
  std::vector<StreamWork> work;
  std::vector<CudaCall> calls;
  std::vector<GpuWait> waits;
  std::vector<EventRecorded> events;  ///< in the order of their correlations
  std::vector<CausedBy> causes;       ///< likewise
  std::vector<TracingOverhead> overheads;
  std::vector<DriverMemory> memory;

  std::size_t dropped_records = 0;     ///< for want of buffers: what they said is missing here
  std::size_t untimed_records = 0;     ///< left out: CUPTI had no times for them
  std::size_t other_records = 0;       ///< left out: of kinds that were not asked for
  std::size_t unreadable_buffers = 0;  ///< whose rest could not be read
};

}  // namespace offprof
