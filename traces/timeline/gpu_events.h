#pragma once

#include "traces/model/timeline.h"
#include "traces/model/trace.h"
#include "traces/timeline/event_lines.h"

namespace offprof {

/// Returns the row of a GPU stream.
constexpr TraceRow row_of_stream(std::uint32_t stream) {
  return {0, static_cast<int>(stream)};
}

/// Writes the names of the rows of Timeline::gpu.
void write_gpu_rows(EventLines& lines, const Timeline& timeline);
/// Writes the Timeline::gpu of `trace` in the format of PyTorch's profiler: `kernel`, `gpu_memcpy`,
/// `gpu_memset`, `cuda_runtime` and `cuda_driver`, with arrows (`ac2g`) from each call to the work that it
/// launched.
void write_gpu_events(EventLines& lines, const Trace& trace);

}  // namespace offprof
