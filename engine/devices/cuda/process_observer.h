#pragma once

#include <set>
#include <string>

#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Reports the operators of all threads, and the blocks of PyTorch's caching allocator, to the virtual GPU
/// from now on, which needs them for its cost model. For programs that run without the engine and its
/// OpObserver. Call it once per process, when CUDA is initialized and nothing is allocated yet. `gpu` must
/// live as long as the process.
void observe_process(VirtualGpu& gpu);

/// Returns the names of the operators, since observe_process, that read values back from the device.
std::set<std::string> value_reads_of_process();

}  // namespace offprof
