#include <cuda.h>

#include "engine/devices/virtual_gpu/runtime/access.h"

// NVIDIA's management library, as far as PyTorch asks it: the number of devices, processes that use the GPU
// (for messages about memory that ran out), and whether memory can be shared over a fabric. LibTorch's
// packages lack nvml.h, so its declarations are repeated here.

namespace {

enum NvmlStatus : int { kSuccess = 0, kInvalidArgument = 2, kNotSupported = 3 };

// nvmlGpuFabricInfo_v2_t
struct FabricInfo {
  unsigned version;
  unsigned char cluster[16];
  NvmlStatus status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
static_assert(sizeof(FabricInfo) == 36, "as in nvml.h");
constexpr unsigned char kNoFabric = 0;  // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED

// Returns the handle of each device. Nobody reads its contents.
void* the_device() {
  static char device;
  return &device;
}

}  // namespace

extern "C" {

NvmlStatus nvmlInit() {
  return kSuccess;
}
NvmlStatus nvmlInit_v2() {
  return kSuccess;
}
NvmlStatus nvmlShutdown() {
  return kSuccess;
}

NvmlStatus nvmlSystemGetCudaDriverVersion_v2(int* version) {
  *version = CUDA_VERSION;
  return kSuccess;
}

NvmlStatus nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(offprof::runtime::gpu().devices());
  return kSuccess;
}

NvmlStatus nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= static_cast<unsigned>(offprof::runtime::gpu().devices())) return kInvalidArgument;
  *device = the_device();
  return kSuccess;
}

NvmlStatus nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = the_device();
  return kSuccess;
}

// The virtual GPU belongs to one process, so no other is listed.
NvmlStatus nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void*) {
  *count = 0;
  return kSuccess;
}

// A card without a fabric: no memory is shared between processes.
NvmlStatus nvmlDeviceGetGpuFabricInfoV(void*, FabricInfo* info) {
  info->state = kNoFabric;
  return kSuccess;
}

NvmlStatus nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int*) {
  return kNotSupported;
}
NvmlStatus nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) {
  return kNotSupported;
}

}  // extern "C"
