#include "engine/devices/cuda/gpu_properties.h"

#include <cuda_runtime_api.h>

#include "engine/devices/cuda/cuda_call.h"

namespace offprof {
namespace {

/// cudaDeviceProp of CUDA 13 has no clocks.
int attribute_of(int index, cudaDeviceAttr attribute) {
  int value = 0;
  check_cuda(cudaDeviceGetAttribute(&value, attribute, index), "query an attribute of the device");
  return value;
}

}  // namespace

DeviceProfile properties_of_gpu(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "query the properties of the device");
  DeviceProfile profile;
  profile.device_name = properties.name;
  profile.memory_bytes = static_cast<Bytes>(properties.totalGlobalMem);
  profile.compute_capability_major = properties.major;
  profile.compute_capability_minor = properties.minor;
  profile.multiprocessors = properties.multiProcessorCount;
  profile.max_threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor;
  profile.max_blocks_per_multiprocessor = properties.maxBlocksPerMultiProcessor;
  profile.registers_per_multiprocessor = properties.regsPerMultiprocessor;
  profile.clock_khz = attribute_of(index, cudaDevAttrClockRate);
  profile.shared_memory_per_block_bytes = static_cast<Bytes>(properties.sharedMemPerBlock);
  profile.shared_memory_per_block_optin_bytes = static_cast<Bytes>(properties.sharedMemPerBlockOptin);
  profile.shared_memory_per_multiprocessor_bytes = static_cast<Bytes>(properties.sharedMemPerMultiprocessor);
  profile.l2_cache_bytes = properties.l2CacheSize;
  profile.memory_bus_bits = properties.memoryBusWidth;
  profile.memory_clock_khz = attribute_of(index, cudaDevAttrMemoryClockRate);
  return profile;
}

}  // namespace offprof
