#pragma once

#include <string>

#include "simulator/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Opens the stand-in libraries in `folder`, so that a LibTorch which is opened later finds them in the place
/// of CUDA's, and configures the virtual GPU in them. Once in a process, before anything of CUDA's is in it.
/// Throws Error (environment): a library is missing, broken, or a real one is in the process already.
VirtualGpu& open_virtual_gpu(const std::string& folder, VirtualGpuOptions options);

/// Call it with what dlerror said when LibTorch could not be opened over the virtual GPU. Throws Error
/// (environment) that names the function where LibTorch asks for one that the stand-in libraries lack: they
/// were built for another LibTorch. Else returns.
void check_coverage(const std::string& dlopen_message);

}  // namespace offprof
