#include <algorithm>
#include <cstdio>

#include "engine/devices/virtual_gpu/runtime/cudart.h"
#include "engine/devices/virtual_gpu/runtime/device_properties.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

namespace offprof::runtime {
namespace {

thread_local int device_of_thread = 0;

bool exists(int device) {
  return device >= 0 && device < gpu().devices();
}

cudaError_t check_device(int device) {
  return noted(exists(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // namespace

int current_device() {
  return device_of_thread;
}

}  // namespace offprof::runtime

using namespace offprof;
using namespace offprof::runtime;

extern "C" {

// Declared here because LibTorch's packages lack cuda_profiler_api.h.
cudaError_t cudaProfilerStart();
cudaError_t cudaProfilerStop();

cudaError_t cudaGetDeviceCount(int* count) {
  OFFPROF_TRACED_CALL(cudaGetDeviceCount_v3020);
  *count = gpu().devices();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  OFFPROF_TRACED_CALL(cudaGetDevice_v3020);
  *device = current_device();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  OFFPROF_TRACED_CALL(cudaSetDevice_v3020);
  if (exists(device)) {
    device_of_thread = device;
  } else {
    gpu().unsupported_calls().note_missing_device(device);
  }
  return check_device(device);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  OFFPROF_TRACED_CALL(cudaGetDeviceProperties_v12000);
  if (exists(device)) *properties = device_properties(gpu().profile());
  return check_device(device);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  OFFPROF_TRACED_CALL(cudaDeviceGetAttribute_v5000);
  if (exists(device)) *value = device_attribute(gpu().profile(), attribute);
  return check_device(device);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int bytes, int device) {
  if (exists(device)) std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02x:00.0", device);
  return check_device(device);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = kGreatestPriority;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  OFFPROF_TRACED_CALL(cudaDeviceSynchronize_v3020);
  gpu().streams().synchronise_device();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// The total is the device's memory, whatever the limit. The free memory is bounded by the limit.
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  OFFPROF_TRACED_CALL(cudaMemGetInfo_v3020);
  SimulatedGpu& device = gpu();
  *total = static_cast<std::size_t>(device.profile().memory_bytes);
  *free = static_cast<std::size_t>(std::max<Bytes>(0, device.memory().limit_bytes() - device.used_bytes()));
  return cudaSuccess;
}

// Only the observer profiles this device.
cudaError_t cudaProfilerStart() {
  return cudaSuccess;
}

cudaError_t cudaProfilerStop() {
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int, int) {
  *can_access = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return noted(cudaErrorPeerAccessUnsupported);
}

}  // extern "C"
