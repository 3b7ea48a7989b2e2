#include "engine/devices/virtual_gpu/runtime/access.h"

#include <algorithm>

#include "engine/devices/virtual_gpu/runtime/traced_call.h"

namespace offprof::runtime {
namespace {

thread_local bool is_in_a_call = false;

}  // namespace

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

CallScope::CallScope(const ApiCall& call) : call_(call) {
  GpuObserver* const observer = unconfigured_gpu().observer();
  if (observer == nullptr || is_in_a_call) return;
  observer_ = observer;
  is_in_a_call = true;
  since_ = unconfigured_gpu().host_time();
  observer_->on_call_begin();
}

CallScope::~CallScope() {
  if (observer_ == nullptr) return;
  observer_->on_call_end(call_, {since_, unconfigured_gpu().host_time()});
  is_in_a_call = false;
}

// Libraries launch their kernels through the driver.
void launch_library_call(StreamId stream, const char* function) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchKernel);
  gpu().kernels().launch(stream, {.name = function});
}

int unknown_size(const char* what) {
  gpu().unsupported_calls().note_unknown_size(what);
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
  offprof::runtime::unconfigured_gpu().unsupported_calls().note_unwritten(function);
  return 0;
}

}  // extern "C"
