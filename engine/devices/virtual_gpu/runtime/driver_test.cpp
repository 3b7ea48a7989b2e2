// Tests of the driver API that Triton and torch.compile use, over the stand-in libraries.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "engine/devices/virtual_gpu/kernel_code/test_cubin.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

struct CudaDriver : testing::Test {
  CudaDriver() {
    VirtualGpuOptions options;
    options.profile = load_profile("a100-40gb");
    gpu.configure(options);
  }

  VirtualGpu& gpu = *offprof_virtual_gpu();
};

/// Calls a function that its users look up by its name. A missing one fails the test.
template <typename Function, typename... Arguments>
auto call(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  using Result = decltype(function(arguments...));
  if (function == nullptr) {
    ADD_FAILURE() << "no function " << name;
    return Result{};
  }
  return function(arguments...);
}
#define CALL(function, ...) call<decltype(&(function))>(#function, __VA_ARGS__)

int attribute(CUdevice_attribute which) {
  int value = -1;
  EXPECT_EQ(CALL(cuDeviceGetAttribute, &value, which, 0), CUDA_SUCCESS);
  return value;
}

TEST_F(CudaDriver, ReportsTheAttributesOfTheProfile) {
  const DeviceProfile profile = load_profile("a100-40gb");
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), profile.multiprocessors);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
            profile.shared_memory_per_block_optin_bytes);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK), 65536);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE), 1410000);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE), 1215000);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH), 5120);
  EXPECT_EQ(attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED), 1);
}

TEST_F(CudaDriver, ReportsTheSameClocksAsTheRuntime) {
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0), cudaSuccess);
  EXPECT_EQ(value, attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMemoryClockRate, 0), cudaSuccess);
  EXPECT_EQ(value, attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE));
}

TEST_F(CudaDriver, KeepsTheLimitsOfTheContext) {
  std::size_t before = 0, after = 0;
  ASSERT_EQ(CALL(cuCtxGetLimit, &before, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(before, 1U << 20U);
  EXPECT_EQ(CALL(cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, before * 2), CUDA_SUCCESS);
  ASSERT_EQ(CALL(cuCtxGetLimit, &after, CU_LIMIT_PRINTF_FIFO_SIZE), CUDA_SUCCESS);
  EXPECT_EQ(after, before * 2);
  CALL(cuCtxSetLimit, CU_LIMIT_PRINTF_FIFO_SIZE, before);
}

TEST_F(CudaDriver, RejectsALimitThatItDoesNotHave) {
  std::size_t value = 0;
  EXPECT_EQ(CALL(cuCtxGetLimit, &value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE), CUDA_ERROR_UNSUPPORTED_LIMIT);
  EXPECT_EQ(CALL(cuCtxSetLimit, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

/// A function of a module.
CUfunction loaded_function() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(CALL(cuModuleLoadData, &module, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CALL(cuModuleGetFunction, &function, module, "triton_add"), CUDA_SUCCESS);
  return function;
}

TEST_F(CudaDriver, AFunctionHasTheLimitsOfTheDevice) {
  CUfunction const function = loaded_function();
  int threads = 0, shared = 0, registers = -1;
  EXPECT_EQ(CALL(cuFuncGetAttribute, &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
            CUDA_SUCCESS);
  EXPECT_EQ(threads, 1024);
  EXPECT_EQ(CALL(cuFuncGetAttribute, &shared, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function),
            CUDA_SUCCESS);
  EXPECT_EQ(shared, 48 * kKiB);
  EXPECT_EQ(CALL(cuFuncGetAttribute, &registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function), CUDA_SUCCESS);
  EXPECT_EQ(registers, 0);
}

TEST_F(CudaDriver, LimitsTheSharedMemoryOfAFunction) {
  CUfunction const function = loaded_function();
  const auto most = static_cast<int>(load_profile("a100-40gb").shared_memory_per_block_optin_bytes);
  constexpr auto kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  EXPECT_EQ(CALL(cuFuncSetAttribute, function, kShared, most), CUDA_SUCCESS);
  EXPECT_EQ(CALL(cuFuncSetAttribute, function, kShared, most + 1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(CudaDriver, LoadsNoModuleFromAMissingFile) {
  CUmodule module = nullptr;
  EXPECT_EQ(CALL(cuModuleLoad, &module, "/nonexistent.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
}

CUresult device_pointer(const void* address, CUdeviceptr& found) {
  return CALL(cuPointerGetAttribute, static_cast<void*>(&found), CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
              reinterpret_cast<CUdeviceptr>(address));
}

TEST_F(CudaDriver, KnowsTheDevicePointersOfDeviceAndPinnedMemory) {
  void *on_device = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&on_device, 1024), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 1024), cudaSuccess);
  CUdeviceptr found = 0;
  EXPECT_EQ(device_pointer(on_device, found), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<CUdeviceptr>(on_device));
  EXPECT_EQ(device_pointer(pinned, found), CUDA_SUCCESS);
  EXPECT_EQ(found, reinterpret_cast<CUdeviceptr>(pinned));
  const int pageable = 0;
  EXPECT_EQ(device_pointer(&pageable, found), CUDA_ERROR_INVALID_VALUE);
  cudaFree(on_device);
  cudaFreeHost(pinned);
}

TEST_F(CudaDriver, FindsTheAllocationOfAnAddress) {
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, 4 * kMiB), cudaSuccess);
  const auto address = reinterpret_cast<CUdeviceptr>(block);
  // Looked up by this name, whatever version of the function cuda.h names.
  const auto find = [](CUdeviceptr* begin, std::size_t* bytes, CUdeviceptr inside) {
    return call<CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr)>("cuMemGetAddressRange", begin, bytes,
                                                                       inside);
  };
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(find(&begin, &bytes, address + kMiB), CUDA_SUCCESS);
  EXPECT_EQ(begin, address);
  EXPECT_EQ(bytes, 4U * kMiB);
  const int pageable = 0;
  EXPECT_EQ(find(&begin, &bytes, reinterpret_cast<CUdeviceptr>(&pageable)), CUDA_ERROR_NOT_FOUND);
  cudaFree(block);
}

TEST_F(CudaDriver, TheManagementLibraryHasOneDevice) {
  unsigned count = 0;
  EXPECT_EQ(call<int (*)(unsigned*)>("nvmlDeviceGetCount_v2", &count), 0);
  EXPECT_EQ(count, 1U);
}

CUlaunchConfig one_block() {
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 128;
  config.blockDimY = config.blockDimZ = 1;
  return config;
}

TEST_F(CudaDriver, LaunchesByTheExtendedCall) {
  const CUlaunchConfig config = one_block();
  const auto before = gpu.launches();
  EXPECT_EQ(CALL(cuLaunchKernelEx, &config, loaded_function(), nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(gpu.launches(), before + 1);
  EXPECT_EQ(gpu.launches_by_kernel()["triton_add"], 1);
}

/// A function of a cubin whose parameters are two numbers, of the given address spaces, of 8 bytes.
CUfunction function_of_two(std::uint32_t first_space, std::uint32_t second_space) {
  TestCubin cubin;
  cubin.add_kernel("triton_add");
  cubin.add_parameter(0, 8, first_space);
  cubin.add_parameter(1, 8, second_space);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_EQ(CALL(cuModuleLoadData, &module, cubin.image().data()), CUDA_SUCCESS);
  EXPECT_EQ(CALL(cuModuleGetFunction, &function, module, "triton_add"), CUDA_SUCCESS);
  return function;
}

/// Launches the function with the two arguments and returns the time until it has ended.
Nanoseconds time_of(VirtualGpu& gpu, CUfunction function, void* first, void* second) {
  void* arguments[] = {static_cast<void*>(&first), static_cast<void*>(&second)};
  cudaDeviceSynchronize();
  const Nanoseconds begin = gpu.host_time();
  EXPECT_EQ(CALL(cuLaunchKernel, function, 1U, 1U, 1U, 128U, 1U, 1U, 0U, CUstream{},
                 static_cast<void**>(arguments), static_cast<void**>(nullptr)),
            CUDA_SUCCESS);
  cudaDeviceSynchronize();
  return gpu.host_time() - begin;
}

/// Returns the time of a kernel that moves so many bytes, after its launch. On a100-40gb a kernel takes 2 us
/// and moves 0.83 * 1.555 TB/s.
Nanoseconds time_to_move(VirtualGpu& gpu, Bytes bytes) {
  return gpu.link().launch_ns + 2000 +
         static_cast<Nanoseconds>(std::llround(static_cast<double>(bytes) / 1290.65));
}

TEST_F(CudaDriver, AKernelMovesTheMemoryThatItsPointersReach) {
  void *a = nullptr, *b = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 64 * kMiB), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&b, 32 * kMiB), cudaSuccess);
  CUfunction const pointers = function_of_two(TestCubin::kGlobal, TestCubin::kGlobal);
  EXPECT_EQ(time_of(gpu, pointers, a, b), time_to_move(gpu, 96 * kMiB));
  CUfunction const pointer_and_number = function_of_two(TestCubin::kGlobal, TestCubin::kPlain);
  EXPECT_EQ(time_of(gpu, pointer_and_number, a, b), time_to_move(gpu, 64 * kMiB));
  cudaFree(a);
  cudaFree(b);
}

TEST_F(CudaDriver, WhereNoPointerIsDeclaredNumbersThatAreAddressesCount) {
  void* a = nullptr;
  ASSERT_EQ(cudaMalloc(&a, 64 * kMiB), cudaSuccess);
  CUfunction const numbers = function_of_two(TestCubin::kPlain, TestCubin::kPlain);
  EXPECT_EQ(time_of(gpu, numbers, reinterpret_cast<void*>(1000), a), time_to_move(gpu, 64 * kMiB));
  cudaFree(a);
}

TEST_F(CudaDriver, ClustersShareTheMultiprocessors) {
  CUlaunchConfig config = one_block();
  int clusters = 0;
  EXPECT_EQ(CALL(cuOccupancyMaxActiveClusters, &clusters, loaded_function(), &config), CUDA_SUCCESS);
  EXPECT_EQ(clusters, 108);
  CUlaunchAttribute size{};
  size.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  size.value.clusterDim.x = 4;
  size.value.clusterDim.y = size.value.clusterDim.z = 1;
  config.attrs = &size;
  config.numAttrs = 1;
  EXPECT_EQ(CALL(cuOccupancyMaxActiveClusters, &clusters, loaded_function(), &config), CUDA_SUCCESS);
  EXPECT_EQ(clusters, 27);
}

}  // namespace
}  // namespace offprof
