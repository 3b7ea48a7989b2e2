#include "simulator/virtual_gpu/runtime/access.h"

#include <algorithm>

namespace offprof::runtime {

// Never destroyed: static destructors of LibTorch call CUDA.
SimulatedGpu& unconfigured_gpu() {
  static auto* const the_gpu = new SimulatedGpu;
  return *the_gpu;
}

SimulatedGpu& gpu() {
  SimulatedGpu& the_gpu = unconfigured_gpu();
  the_gpu.configure_by_default();
  return the_gpu;
}

void launch_library_call(StreamId stream, const char* function) {
  gpu().launch(stream, {.name = function});
}

int unknown_size(const char* what) {
  gpu().note_unknown_size(what);
  return 0;
}

int blocks_per_multiprocessor(int block_size) {
  const DeviceProfile profile = gpu().profile();
  const int by_threads = profile.max_threads_per_multiprocessor / std::max(1, block_size);
  return std::clamp(by_threads, 1, profile.max_blocks_per_multiprocessor);
}

}  // namespace offprof::runtime

extern "C" {

offprof::VirtualGpu* offprof_virtual_gpu() {
  return &offprof::runtime::unconfigured_gpu();
}

long offprof_unwritten(const char* function) {
  offprof::runtime::unconfigured_gpu().note_unwritten(function);
  return 0;
}

}  // extern "C"
