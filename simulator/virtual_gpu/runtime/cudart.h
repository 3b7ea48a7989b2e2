#pragma once

// The headers hide some functions that this library must define behind inline ones, unless told who asks.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include "simulator/virtual_gpu/runtime/access.h"

// What the parts of the stand-in for the CUDA runtime share.
namespace offprof::runtime {

/// Keeps an error for cudaGetLastError, per thread, and returns it.
cudaError_t noted(cudaError_t error);
cudaError_t noted(GpuStatus status);

/// Of streams; the least is 0, the default.
inline constexpr int kGreatestPriority = -5;

/// The stream that a handle means: the two handles of default streams have constants of their own.
StreamId stream_of(cudaStream_t stream);

}  // namespace offprof::runtime
