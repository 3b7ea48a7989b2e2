#pragma once

#include <string>

#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Opens the stand-in libraries in `folder` and configures their virtual GPU. A LibTorch that is opened later
/// then uses them in place of CUDA's libraries. Call it once per process, before any CUDA library is loaded.
/// Throws Error (environment) if a library is missing or broken, or if a real one is already loaded.
VirtualGpu& open_virtual_gpu(const std::string& folder, VirtualGpuOptions options);

/// Explains why LibTorch could not be opened over the virtual GPU. `dlopen_message` is the text of dlerror.
/// Throws Error (environment) with the function's name if LibTorch needs a function that the stand-in
/// libraries lack, because they were built for another LibTorch. Otherwise returns.
void check_coverage(const std::string& dlopen_message);

}  // namespace offprof
