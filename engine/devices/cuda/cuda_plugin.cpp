#include "engine/devices/cuda_plugin.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/devices/cuda/cuda_device.h"
#include "engine/devices/cuda/process_observer.h"
#include "engine/devices/cuda/virtual_device.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "engine/torch/torch_error.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

VirtualGpu& find_virtual_gpu() {
  const auto function = reinterpret_cast<VirtualGpu* (*)()>(dlsym(RTLD_DEFAULT, kVirtualGpuSymbol));
  if (function == nullptr)
    throw environment_error("the virtual GPU's libraries were not opened before LibTorch");
  return *function();
}

/// Throws if there is no such GPU. If the driver counts no device, the message is the driver's own.
void check_index(int index) {
  const int count = c10::cuda::device_count_ensure_non_zero();
  if (index < count) return;
  throw input_error("there is no GPU " + std::to_string(index),
                    "this machine has " + std::to_string(count) + ", counted from 0");
}

/// Throws if PyTorch's caching allocator is off: the books listen to it.
void check_allocator() {
  for (const char* variable : {"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_NO_HIP_MEMORY_CACHING"})
    if (std::getenv(variable) != nullptr)
      throw input_error(std::string(variable) + " turns off PyTorch's caching allocator, which offprof needs",
                        std::string("unset ") + variable);
  const std::string backend = c10::cuda::CUDACachingAllocator::get()->name();
  if (backend == "native") return;
  throw input_error("PyTorch's allocator is set to '" + backend + "', which offprof does not support",
                    "remove backend: from PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF");
}

/// Throws if CUDA_LAUNCH_BLOCKING is set. Then every launch waits for its end, so nothing overlaps and times
/// are meaningless.
void check_launches_are_asynchronous() {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (blocking == nullptr || *blocking == '\0' || std::string_view(blocking) == "0") return;
  throw input_error("CUDA_LAUNCH_BLOCKING=" + std::string(blocking) +
                        " makes the host wait for every kernel and copy: nothing would overlap",
                    "unset CUDA_LAUNCH_BLOCKING");
}

/// Returns the error for a failed start. If allocator settings exist, the reason is that PyTorch rejects
/// them.
Error cannot_start(const std::exception& error) {
  for (const char* variable : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
    if (const char* settings = std::getenv(variable))
      return input_error(
          std::string("PyTorch rejects ") + variable + "=" + settings + ": " + readable_reason(error),
          "see \"Optimizing memory usage\" in PyTorch's CUDA notes for the valid settings");
  return environment_error("CUDA does not start on this machine: " + readable_reason(error),
                           "run `offprof doctor` for details");
}

Device* make_device(int index, bool is_virtual) {
  check_launches_are_asynchronous();
  try {
    check_index(index);
  } catch (const c10::Error& error) {
    throw environment_error("CUDA does not work on this machine: " + readable_reason(error),
                            "run `offprof doctor` for details; --device virtual:h200 needs no GPU");
  }
  try {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    c10::cuda::CUDACachingAllocator::emptyCache();  // the first call parses the allocator's settings
  } catch (const std::exception& error) {
    throw cannot_start(error);
  }
  check_allocator();
  if (is_virtual) return new VirtualDevice(find_virtual_gpu());
  return new CudaDevice(static_cast<c10::DeviceIndex>(index));
}

}  // namespace
}  // namespace offprof

#define OFFPROF_EXPORT __attribute__((visibility("default")))

extern "C" {

OFFPROF_EXPORT offprof::Device* offprof_make_cuda_device(int index, bool is_virtual) {
  return offprof::make_device(index, is_virtual);
}

// Called by python/offprof/virtual_gpu.py. Exceptions must not leave it. Returns 0, or 1 if there is no
// virtual GPU.
OFFPROF_EXPORT int offprof_observe_process() {
  try {
    offprof::observe_process(offprof::find_virtual_gpu());
    return 0;
  } catch (const std::exception&) {
    return 1;
  }
}

// Returns the names, one per line. The text is valid until the next call of the thread.
OFFPROF_EXPORT const char* offprof_value_reads_of_process() {
  thread_local std::string text;
  text.clear();
  for (const std::string& op : offprof::value_reads_of_process()) text += op + "\n";
  return text.c_str();
}

// See note_moves.
OFFPROF_EXPORT void offprof_note_moves(int are_moves) {
  offprof::note_moves(are_moves != 0);
}

}  // extern "C"
