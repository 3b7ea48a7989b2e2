#pragma once

#include "engine/device.h"

namespace offprof {

/// The one symbol of the CUDA library, which brings LibTorch's CUDA part: a GPU, owned by the caller. Throws
/// Error (environment) where CUDA does not work here. `is_virtual`: the virtual GPU, whose libraries the
/// process must have opened before LibTorch.
using MakeCudaDevice = Device* (*)(int index, bool is_virtual);
inline constexpr const char* kMakeCudaDeviceSymbol = "offprof_make_cuda_device";
inline constexpr const char* kCudaPluginLibrary = "liboffprof_cuda.so";

}  // namespace offprof
