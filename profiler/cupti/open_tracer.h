#pragma once

#include <memory>

#include "profiler/cupti/gpu_tracer.h"

namespace offprof {

/// The tracer of this process's GPU, real or virtual, by the CUPTI that LibTorch loaded. To be opened before
/// the first CUDA call. Has been tried: what it needs is there. Throws Error (environment) with the reason
/// and what helps: CUPTI is not there, another program has subscribed to it, the driver has no GPU or is too
/// old, or it does not let this GPU be traced.
std::unique_ptr<GpuTracer> open_gpu_tracer();

}  // namespace offprof
