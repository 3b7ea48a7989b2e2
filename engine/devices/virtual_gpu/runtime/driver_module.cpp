#include <cuda.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>

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

CUresult cuModuleLoad(CUmodule* module, const char*) {
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

CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  return CUDA_SUCCESS;
}
CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size, std::size_t) {
  *blocks = blocks_per_multiprocessor(block_size);
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

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream stream, void** arguments) {
  OFFPROF_TRACED_DRIVER_CALL(cuLaunchCooperativeKernel);
  return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
                        arguments, nullptr);
}

}  // extern "C"
