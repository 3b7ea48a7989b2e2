#pragma once

#include <cuda_runtime_api.h>

namespace offprof {

/// Throws Error (environment) unless a CUDA call succeeded. `what` names the purpose of the call, in words
/// that follow `CUDA cannot`. Clears the error that CUDA keeps for the thread.
void check_cuda(cudaError_t status, const char* what);

}  // namespace offprof
