#pragma once

#include <cstdint>
#include <string>

#include "profiler/cupti/activity.h"
#include "traces/units.h"

namespace offprof {

enum class TraceDetail : std::uint8_t {
  kStreams,  ///< kernels, copies and sets: the least that tells what the GPU did
  kAll,      ///< also calls, waits, events, causes, memory, and what tracing costs
};

/// What traces, and what it takes.
struct TracerInfo {
  std::string tool;      ///< `CUPTI`
  std::string version;   ///< `13.0.1`
  Bytes host_bytes = 0;  ///< of host memory, for buffers
};

/// Records what the GPU does.
class GpuTracer {
 public:
  virtual ~GpuTracer() = default;

  virtual TracerInfo info() const = 0;
  /// From here on. The device must be idle.
  virtual void begin(TraceDetail detail) = 0;
  /// Makes room for more: reads what was recorded so far. The device must be idle.
  virtual void drain() = 0;
  /// To here; hands out what was recorded. The device must be idle.
  virtual GpuActivity end() = 0;

  /// What this thread asks of the GPU from here on to the pop is for `id`, and not for that of a push before
  /// it.
  virtual void push(std::uint64_t id) = 0;
  virtual void pop() = 0;
};

}  // namespace offprof
