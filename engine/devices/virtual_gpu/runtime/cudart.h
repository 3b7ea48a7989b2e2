#pragma once

// Without this the headers hide functions that this library must define behind inline functions.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include "engine/devices/virtual_gpu/runtime/access.h"

// Helpers shared by the parts of the stand-in for the CUDA runtime.
namespace offprof::runtime {

/// Stores an error for cudaGetLastError, per thread, and returns it.
cudaError_t noted(cudaError_t error);
cudaError_t noted(GpuStatus status);

/// Greatest priority of streams; the least is 0, the default.
inline constexpr int kGreatestPriority = -5;

/// Returns the device of the calling thread. The virtual GPU is that device; the others of the node only
/// exist.
int current_device();

/// Returns the stream of a handle. The two default streams have handles that are constants.
StreamId stream_of(cudaStream_t stream);

}  // namespace offprof::runtime
