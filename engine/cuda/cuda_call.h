#pragma once

#include <cuda_runtime_api.h>

namespace offprof {

/// Throws Error (environment) unless a call of CUDA succeeded: `what` says what it was to do, in words that
/// follow `CUDA cannot`. The error that CUDA keeps for the thread is cleared.
void check_cuda(cudaError_t status, const char* what);

}  // namespace offprof
