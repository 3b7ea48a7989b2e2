#pragma once

#include <cstdint>
#include <string>

#include "profiler/recording/activity.h"
#include "traces/base/units.h"

namespace offprof {

enum class TraceDetail : std::uint8_t {
  kStreams,  ///< kernels, copies and memsets: the least that shows what the GPU did
  kAll,      ///< also calls, waits, events, causes, memory, and the cost of tracing
};

/// Tool that traces, and the memory it takes.
struct TracerInfo {
  std::string tool;      ///< `CUPTI`
  std::string version;   ///< `13.0.1`
  Bytes host_bytes = 0;  ///< host memory for buffers
};

/// Records what the GPU does.
class GpuTracer {
 public:
  virtual ~GpuTracer() = default;

  virtual TracerInfo info() const = 0;
  /// Starts recording. The device must be idle.
  virtual void begin(TraceDetail detail) = 0;
  /// Reads what was recorded so far, to make room for more. The device must be idle.
  virtual void drain() = 0;
  /// Stops recording and returns what was recorded. The device must be idle.
  virtual GpuActivity end() = 0;

  /// Assigns this thread's later calls to `id` until the matching pop. A nested push takes precedence.
  virtual void push(std::uint64_t id) = 0;
  virtual void pop() = 0;
};

}  // namespace offprof
