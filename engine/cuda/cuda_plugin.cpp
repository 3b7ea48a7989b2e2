#include "engine/cuda/cuda_plugin.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>

#include "engine/cuda/cuda_device.h"
#include "engine/cuda/virtual_device.h"
#include "simulator/virtual_gpu/virtual_gpu.h"
#include "traces/error.h"

namespace offprof {
namespace {

VirtualGpu& find_virtual_gpu() {
  const auto function = reinterpret_cast<VirtualGpu* (*)()>(dlsym(RTLD_DEFAULT, kVirtualGpuSymbol));
  if (function == nullptr)
    throw environment_error("the virtual GPU's libraries were not opened before LibTorch");
  return *function();
}

/// The driver's own words where it counts no device.
void check_index(int index) {
  const int count = c10::cuda::device_count_ensure_non_zero();
  if (index < count) return;
  throw input_error("there is no GPU " + std::to_string(index),
                    "this machine has " + std::to_string(count) + ", counted from 0");
}

Device* make_device(int index, bool is_virtual) {
  try {
    check_index(index);
  } catch (const c10::Error& error) {
    throw environment_error(std::string("CUDA does not work here: ") + error.what_without_backtrace(),
                            "`offprof doctor` says more; --device virtual:h200 needs no GPU");
  }
  at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
  if (is_virtual) return new VirtualDevice(find_virtual_gpu());
  return new CudaDevice(static_cast<c10::DeviceIndex>(index));
}

}  // namespace
}  // namespace offprof

extern "C" __attribute__((visibility("default"))) offprof::Device* offprof_make_cuda_device(int index,
                                                                                            bool is_virtual) {
  return offprof::make_device(index, is_virtual);
}
