#pragma once

#include <c10/cuda/CUDAGuard.h>

#include <optional>
#include <string>

#include "engine/devices/cuda/cuda_call.h"
#include "traces/base/error.h"

namespace offprof {

/// Makes a device the calling thread's current one for its lifetime. The default stream, new events and
/// pinned memory belong to the current device. Costs one query if it is current already. Throws Error
/// (environment).
class OnDevice {
 public:
  explicit OnDevice(c10::DeviceIndex index) {
    int current = -1;
    check_cuda(cudaGetDevice(&current), "read the current GPU");
    if (current == index) return;
    try {
      guard_.emplace(index);
    } catch (const c10::Error& error) {
      throw environment_error(std::string("CUDA cannot select the GPU: ") + error.what_without_backtrace());
    }
  }

 private:
  std::optional<c10::cuda::CUDAGuard> guard_;
};

}  // namespace offprof
