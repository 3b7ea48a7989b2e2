#include "engine/devices/virtual_gpu/runtime/device_properties.h"

#include <cstdio>
#include <cstring>

namespace offprof::runtime {
namespace {

// Common to all GPUs since compute capability 7.0 (CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability").
constexpr int kWarpSize = 32;
constexpr int kMaxThreadsPerBlock = 1024;
constexpr int kMaxBlockZ = 64;
constexpr int kMaxGridX = 2147483647;
constexpr int kMaxGridYz = 65535;
constexpr int kRegistersPerBlock = 65536;
constexpr int kConstantMemoryBytes = 65536;
constexpr int kTextureAlignment = 512;
constexpr int kReservedSharedMemoryBytes = 1024;
constexpr int kCopyEngines = 3;

void fill_limits(cudaDeviceProp& properties) {
  properties.warpSize = kWarpSize;
  properties.maxThreadsPerBlock = kMaxThreadsPerBlock;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = kMaxThreadsPerBlock;
  properties.maxThreadsDim[2] = kMaxBlockZ;
  properties.maxGridSize[0] = kMaxGridX;
  properties.maxGridSize[1] = properties.maxGridSize[2] = kMaxGridYz;
  properties.regsPerBlock = kRegistersPerBlock;
  properties.totalConstMem = kConstantMemoryBytes;
  properties.memPitch = static_cast<std::size_t>(kMaxGridX);
  properties.textureAlignment = kTextureAlignment;
  properties.reservedSharedMemPerBlock = kReservedSharedMemoryBytes;
  properties.concurrentKernels = 1;
  properties.asyncEngineCount = kCopyEngines;
  properties.unifiedAddressing = 1;
  properties.canMapHostMemory = 1;
  properties.streamPrioritiesSupported = 1;
  properties.globalL1CacheSupported = properties.localL1CacheSupported = 1;
  properties.hostRegisterSupported = 1;
  properties.canUseHostPointerForRegisteredMem = 1;
  properties.cooperativeLaunch = 1;
}

// Features that are not listed are missing.
bool has_feature(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrGpuOverlap:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
    case cudaDevAttrHostRegisterSupported:
      return true;
    default:
      return false;
  }
}

int attribute_of(const cudaDeviceProp& p, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimZ:
      return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX:
      return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return p.maxGridSize[1];
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(p.totalConstMem);
    case cudaDevAttrWarpSize:
      return p.warpSize;
    case cudaDevAttrMaxPitch:
      return static_cast<int>(p.memPitch);
    case cudaDevAttrMaxRegistersPerBlock:
      return p.regsPerBlock;
    case cudaDevAttrTextureAlignment:
      return static_cast<int>(p.textureAlignment);
    case cudaDevAttrMultiProcessorCount:
      return p.multiProcessorCount;
    case cudaDevAttrGlobalMemoryBusWidth:
      return p.memoryBusWidth;
    case cudaDevAttrL2CacheSize:
      return p.l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount:
      return p.asyncEngineCount;
    case cudaDevAttrComputeCapabilityMajor:
      return p.major;
    case cudaDevAttrComputeCapabilityMinor:
      return p.minor;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return p.regsPerMultiprocessor;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrClusterLaunch:
      return p.clusterLaunch;
    default:
      return has_feature(attribute) ? 1 : 0;
  }
}

}  // namespace

cudaDeviceProp device_properties(const DeviceProfile& profile) {
  cudaDeviceProp properties;
  std::memset(&properties, 0, sizeof properties);
  fill_limits(properties);
  std::snprintf(properties.name, sizeof properties.name, "%s", profile.device_name.c_str());
  properties.totalGlobalMem = static_cast<std::size_t>(profile.memory_bytes);
  properties.major = profile.compute_capability_major;
  properties.minor = profile.compute_capability_minor;
  properties.multiProcessorCount = profile.multiprocessors;
  properties.maxThreadsPerMultiProcessor = profile.max_threads_per_multiprocessor;
  properties.maxBlocksPerMultiProcessor = profile.max_blocks_per_multiprocessor;
  properties.regsPerMultiprocessor = profile.registers_per_multiprocessor;
  properties.sharedMemPerBlock = static_cast<std::size_t>(profile.shared_memory_per_block_bytes);
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(profile.shared_memory_per_block_optin_bytes);
  properties.sharedMemPerMultiprocessor =
      static_cast<std::size_t>(profile.shared_memory_per_multiprocessor_bytes);
  properties.l2CacheSize = static_cast<int>(profile.l2_cache_bytes);
  properties.memoryBusWidth = profile.memory_bus_bits;
  properties.clusterLaunch = profile.compute_capability_major >= 9 ? 1 : 0;
  return properties;
}

int device_attribute(const DeviceProfile& profile, cudaDeviceAttr attribute) {
  // cudaDeviceProp has no clocks.
  if (attribute == cudaDevAttrClockRate) return profile.clock_khz;
  if (attribute == cudaDevAttrMemoryClockRate) return profile.memory_clock_khz;
  return attribute_of(device_properties(profile), attribute);
}

}  // namespace offprof::runtime
