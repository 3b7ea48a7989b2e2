#include <cuda.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "engine/devices/virtual_gpu/runtime/device_properties.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

// Modules and their kernels, which PyTorch uses to launch kernels that it compiles at run time. A function's
// handle is its name.

using namespace offprof;
using namespace offprof::runtime;

namespace {

CUmodule the_module() {
  static char module;
  return reinterpret_cast<CUmodule>(&module);
}

const char* lasting_name(const char* name) {
  thread_local std::set<std::string> names;
  return names.emplace(name).first->c_str();
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return CUDA_ERROR_FILE_NOT_FOUND;
  *module = the_module();
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = the_module();
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
  *module = the_module();
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  *function = reinterpret_cast<CUfunction>(const_cast<char*>(lasting_name(name)));
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute attribute, int value) {
  const bool is_too_much = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
                           value > gpu().profile().shared_memory_per_block_optin_bytes;
  return is_too_much ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  return CUDA_SUCCESS;
}
// Code is not read. So a function reports the limits of the device, and no registers or memory of its own.
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  const DeviceProfile profile = gpu().profile();
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = device_attribute(profile, cudaDevAttrMaxThreadsPerBlock);
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(profile.shared_memory_per_block_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 10 * profile.compute_capability_major + profile.compute_capability_minor;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size, std::size_t) {
  *blocks = blocks_per_multiprocessor(block_size);
  return CUDA_SUCCESS;
}

// The clusters that the multiprocessors hold if each has one block.
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
  unsigned blocks = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config->attrs[i].value.clusterDim;
    blocks = size.x * size.y * size.z;
  }
  if (blocks == 0) return CUDA_ERROR_INVALID_VALUE;
  *clusters = gpu().profile().multiprocessors / static_cast<int>(blocks);
  return CUDA_SUCCESS;
}

// The map tells kernels how a tensor is laid out. They do not run, so it stays empty.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void*,
                                const cuuint64_t*, const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                                CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                CUtensorMapFloatOOBfill) {
  constexpr cuuint32_t kMostDimensions = 5;
  if (rank == 0 || rank > kMostDimensions) return CUDA_ERROR_INVALID_VALUE;
  std::memset(map, 0, sizeof *map);
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned, CUstream stream,
                        void**, void**) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchKernel);
  const KernelLaunch launch{.name = reinterpret_cast<const char*>(function),
                            .grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z}};
  return gpu().kernels().launch(stream, launch) == GpuStatus::kOk ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                        config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream,
                        arguments, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** arguments) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchCooperativeKernel);
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                        arguments, nullptr);
}

}  // extern "C"
