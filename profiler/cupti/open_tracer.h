#pragma once

#include <memory>

#include "profiler/cupti/gpu_tracer.h"

namespace offprof {

/// Returns the tracer of this process's GPU, real or virtual, using the CUPTI that LibTorch loaded. Open it
/// before the first CUDA call. The tracer has been tried, so everything it needs is available. Throws Error
/// (environment) with the reason and a hint: CUPTI is missing, another program has subscribed to it, the
/// driver has no GPU or is too old, or it does not permit tracing of this GPU.
std::unique_ptr<GpuTracer> open_gpu_tracer();

}  // namespace offprof
