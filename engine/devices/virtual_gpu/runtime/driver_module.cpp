#include <cuda.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/kernel_code/cubin.h"
#include "engine/devices/virtual_gpu/runtime/device_properties.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

// Modules and their kernels, which PyTorch and Triton use to launch kernels that they compile at run time.

using namespace offprof;
using namespace offprof::runtime;

namespace {

/// Function of a module; its address is the handle.
struct LoadedFunction {
  std::string name;
  std::vector<KernelParameter> parameters;  ///< empty: not known
};

/// A module; its address is the handle. It is never destroyed, since CUPTI's records point to the names of
/// its functions.
class LoadedModule {
 public:
  explicit LoadedModule(KernelParameters parameters) : parameters_(std::move(parameters)) {}

  LoadedFunction* function(const char* name) {
    const std::lock_guard turn(mutex_);
    const auto [found, is_new] = functions_.try_emplace(name);
    if (is_new) {
      found->second.name = name;
      if (const auto known = parameters_.find(name); known != parameters_.end())
        found->second.parameters = known->second;
    }
    return &found->second;
  }

 private:
  KernelParameters parameters_;
  std::mutex mutex_;
  std::map<std::string, LoadedFunction, std::less<>> functions_;
};

CUmodule new_module(KernelParameters parameters) {
  return reinterpret_cast<CUmodule>(new LoadedModule(std::move(parameters)));
}

const LoadedFunction& loaded(CUfunction function) {
  return *reinterpret_cast<const LoadedFunction*>(function);
}

/// Returns the device memory that the arguments point to; nullopt if the function's parameters are not known.
/// Where no parameter is declared as a pointer to global memory, each one of a pointer's size may be one.
std::optional<Bytes> argument_bytes(const LoadedFunction& function, void** arguments) {
  const std::vector<KernelParameter>& parameters = function.parameters;
  if (parameters.empty() || arguments == nullptr) return std::nullopt;
  const bool declares = std::ranges::any_of(parameters, &KernelParameter::points_to_global);
  std::vector<const void*> pointers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].bytes != sizeof(void*) || (declares && !parameters[i].points_to_global)) continue;
    std::memcpy(&pointers.emplace_back(), arguments[i], sizeof(void*));
  }
  return gpu().memory().reachable_bytes(pointers);
}

}  // namespace

extern "C" {

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return CUDA_ERROR_FILE_NOT_FOUND;
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  *module = new_module(kernel_parameters(std::as_bytes(std::span(image))));
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  *module = new_module(kernel_parameters_at(image));
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

CUresult cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  *function = reinterpret_cast<CUfunction>(reinterpret_cast<LoadedModule*>(module)->function(name));
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
// Only the parameters are read of the code. So a function reports the limits of the device, and no registers
// or memory of its own.
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
                        void** arguments, void**) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchKernel);
  const KernelLaunch launch{.name = loaded(function).name,
                            .grid = {grid_x, grid_y, grid_z},
                            .block = {block_x, block_y, block_z},
                            .argument_bytes = argument_bytes(loaded(function), arguments)};
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
