#pragma once

#include "traces/event_lines.h"
#include "traces/timeline.h"

namespace offprof {

/// The row of a stream of the GPU.
constexpr TraceRow row_of_stream(std::uint32_t stream) {
  return {0, static_cast<int>(stream)};
}

/// Names of the rows that Timeline::gpu has.
void write_gpu_rows(EventLines& lines, const Timeline& timeline);
/// Timeline::gpu as PyTorch's profiler writes it: `kernel`, `gpu_memcpy`, `gpu_memset`, `cuda_runtime` and
/// `cuda_driver`, with arrows (`ac2g`) from each call to what it asked for.
void write_gpu_events(EventLines& lines, const Timeline& timeline);

}  // namespace offprof
