#pragma once

#include "engine/devices/device.h"

namespace offprof {

/// Type of the only symbol of the CUDA library, which loads LibTorch's CUDA part. The function creates a
/// device, owned by the caller. Throws Error (environment) if CUDA does not work on this machine.
/// `is_virtual`: create a virtual GPU; the process must have opened its libraries before LibTorch.
using MakeCudaDevice = Device* (*)(int index, bool is_virtual);
inline constexpr const char* kMakeCudaDeviceSymbol = "offprof_make_cuda_device";
inline constexpr const char* kCudaPluginLibrary = "liboffprof_cuda.so";

}  // namespace offprof
