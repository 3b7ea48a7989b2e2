#include <dlfcn.h>

#include <cstring>
#include <optional>
#include <string>

#include "engine/devices/virtual_gpu/runtime/cudart.h"
#include "engine/devices/virtual_gpu/runtime/traced_call.h"

using namespace offprof;
using namespace offprof::runtime;

namespace {

// Launch parameters that nvcc's code passes from `<<<...>>>` to the launch, per thread.
struct CallConfiguration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

thread_local CallConfiguration call_configuration;

KernelLaunch launch_of(dim3 grid, dim3 block) {
  return {.name = {}, .grid = {grid.x, grid.y, grid.z}, .block = {block.x, block.y, block.z}};
}

cudaError_t launch(const void* host_stub, dim3 grid, dim3 block, cudaStream_t stream) {
  return noted(gpu().kernels().launch(stream_of(stream), host_stub, launch_of(grid, block)));
}

// The driver's headers map names to versioned functions, such as cuMemHostRegister_v2.
void* driver_function(const char* name) {
  for (const char* version : {"", "_v2", "_v3"}) {
    if (void* found = dlsym(RTLD_DEFAULT, (std::string(name) + version).c_str())) return found;
  }
  return nullptr;
}

}  // namespace

extern "C" {

// A module's handle is its fat binary.
void** __cudaRegisterFatBinary(void* fat_binary) {
  unconfigured_gpu().kernels().register_module(fat_binary);
  return static_cast<void**>(fat_binary);
}

void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) {
  return 1;
}

void __cudaRegisterFunction(void** module, const char* host_stub, char*, const char* device_name, int, void*,
                            void*, void*, void*, int*) {
  unconfigured_gpu().kernels().register_kernel(host_stub, device_name, module);
}

void __cudaRegisterVar(void**, char* host_shadow, char*, const char*, int, std::size_t bytes, int, int) {
  unconfigured_gpu().memory().register_variable(host_shadow, static_cast<Bytes>(bytes));
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  call_configuration = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  *grid = call_configuration.grid;
  *block = call_configuration.block;
  *shared_bytes = call_configuration.shared_bytes;
  std::memcpy(stream, &call_configuration.stream, sizeof call_configuration.stream);
  return cudaSuccess;
}

// A kernel's handle is the address of its host stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host_stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host_stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void**, std::size_t,
                               cudaStream_t stream) {
  OFFPROF_TRACED_CALL(__cudaLaunchKernel_v13000);
  return launch(kernel, grid, block, stream);
}

cudaError_t cudaLaunchKernel(const void* host_stub, dim3 grid, dim3 block, void**, std::size_t,
                             cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaLaunchKernel_v7000);
  return launch(host_stub, grid, block, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* host_stub, void**) {
  OFFPROF_TRACED_CALL(cudaLaunchKernelExC_v11060);
  return launch(host_stub, config->gridDim, config->blockDim, config->stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* host_stub, dim3 grid, dim3 block, void**, std::size_t,
                                        cudaStream_t stream) {
  OFFPROF_TRACED_CALL(cudaLaunchCooperativeKernel_v9000);
  return launch(host_stub, grid, block, stream);
}

// CUB chooses its sizes by the version, and rejects one that it was not compiled for.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* host_stub) {
  OFFPROF_TRACED_CALL(cudaFuncGetAttributes_v3020);
  constexpr int kTypicalRegisters = 32;
  const DeviceProfile profile = gpu().profile();
  const std::optional<GpuCode> code = gpu().kernels().code_of(host_stub);
  if (!code) return noted(cudaErrorNoKernelImageForDevice);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = kTypicalRegisters;
  attributes->ptxVersion = code->capability;
  // The driver compiles PTX for the card in use.
  attributes->binaryVersion = code->is_ptx
                                  ? 10 * profile.compute_capability_major + profile.compute_capability_minor
                                  : code->capability;
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(profile.shared_memory_per_block_bytes);
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size,
                                                          std::size_t) {
  *blocks = blocks_per_multiprocessor(block_size);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int block_size,
                                                                   std::size_t, unsigned) {
  *blocks = blocks_per_multiprocessor(block_size);
  return cudaSuccess;
}

// Finds functions in the stand-in for libcuda.so.1, which is loaded in the same process.
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = driver_function(name);
  if (result != nullptr) {
    *result = *function == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  }
  return cudaSuccess;
}

}  // extern "C"
