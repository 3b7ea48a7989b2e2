#include "engine/devices/cuda/cuda_call.h"

#include <string>

#include "traces/base/error.h"

namespace offprof {

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();
  throw environment_error(std::string("CUDA cannot ") + what + ": " + cudaGetErrorString(status) + " (" +
                              cudaGetErrorName(status) + ")",
                          "run `offprof doctor` to see what the GPU's driver reports");
}

}  // namespace offprof
