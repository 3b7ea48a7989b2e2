// Tests of the CUDA API as programs see it, over the stand-in libraries.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "engine/devices/virtual_gpu/stand_in.h"
#include "traces/base/units.h"

extern "C" {
long cusparseCreate();
// cuDNN's headers are not available here. Programs see its handles and descriptors as pointers.
int cudnnGetProperty(int property, int* value);
std::size_t cudnnGetVersion();
int cudnnGetRNNTempSpaceSizes(void* handle, void* rnn, int mode, void* input, std::size_t* workspace,
                              std::size_t* reserve);
}

namespace offprof {
namespace {

struct CudaRuntime : testing::Test {
  CudaRuntime() {
    VirtualGpuOptions options;
    options.profile = load_profile("a100-40gb");
    gpu.configure(options);
    cudaGetLastError();
  }

  VirtualGpu& gpu = *offprof_virtual_gpu();
};

template <typename Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSuccess);
  return reinterpret_cast<Function>(found);
}

TEST_F(CudaRuntime, ReportsTheFiguresOfTheProfile) {
  const DeviceProfile profile = load_profile("a100-40gb");
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.name, profile.device_name);
  EXPECT_EQ(properties.major, 8);
  EXPECT_EQ(static_cast<Bytes>(properties.totalGlobalMem), profile.memory_bytes);
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, profile.multiprocessors);
}

TEST_F(CudaRuntime, PropertiesAndAttributesAgree) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_EQ(cudaDeviceGetAttribute(&value, which, 0), cudaSuccess);
    return value;
  };
  const auto as_int = [](std::size_t value) { return static_cast<int>(value); };
  EXPECT_EQ(attribute(cudaDevAttrMaxPitch), 2147483647);
  EXPECT_EQ(as_int(properties.memPitch), attribute(cudaDevAttrMaxPitch));
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), 163 * 1024);
  EXPECT_EQ(as_int(properties.sharedMemPerBlockOptin), attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  EXPECT_EQ(as_int(properties.sharedMemPerBlock), attribute(cudaDevAttrMaxSharedMemoryPerBlock));
  EXPECT_EQ(as_int(properties.sharedMemPerMultiprocessor),
            attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
  EXPECT_EQ(as_int(properties.reservedSharedMemPerBlock), attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  EXPECT_EQ(as_int(properties.totalConstMem), attribute(cudaDevAttrTotalConstantMemory));
  EXPECT_EQ(as_int(properties.textureAlignment), attribute(cudaDevAttrTextureAlignment));
  EXPECT_EQ(properties.warpSize, attribute(cudaDevAttrWarpSize));
  EXPECT_EQ(properties.maxThreadsPerBlock, attribute(cudaDevAttrMaxThreadsPerBlock));
  EXPECT_EQ(properties.maxThreadsDim[2], attribute(cudaDevAttrMaxBlockDimZ));
  EXPECT_EQ(properties.maxGridSize[1], attribute(cudaDevAttrMaxGridDimY));
  EXPECT_EQ(properties.regsPerBlock, attribute(cudaDevAttrMaxRegistersPerBlock));
  EXPECT_EQ(properties.l2CacheSize, attribute(cudaDevAttrL2CacheSize));
  EXPECT_EQ(properties.asyncEngineCount, attribute(cudaDevAttrAsyncEngineCount));
}

TEST_F(CudaRuntime, HasOneDevice) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
}

/// CUDA functions that libtorch_python.so links in addition to LibTorch's C++ libraries.
TEST_F(CudaRuntime, HasTheFunctionsThatImportingTorchNeeds) {
  for (const char* name : {"cudaProfilerStart", "cudaProfilerStop", "cudaStreamGetPriority",
                           "cudnnGetProperty", "cuFileBufDeregister", "cuFileBufRegister",
                           "cuFileHandleDeregister", "cuFileHandleRegister", "cuFileRead", "cuFileWrite"})
    EXPECT_NE(dlsym(RTLD_DEFAULT, name), nullptr) << name;
}

TEST_F(CudaRuntime, ReportsTheStreamPriority) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1), cudaSuccess);
  int priority = 7;
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(priority, -1);
  EXPECT_EQ(cudaStreamGetPriority(nullptr, &priority), cudaSuccess);
  EXPECT_EQ(priority, 0);
  cudaStreamDestroy(stream);
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaErrorInvalidResourceHandle);
}

TEST_F(CudaRuntime, ReportsThePartsOfTheCudnnVersion) {
  int parts[3] = {};
  for (int property = 0; property < 3; ++property) EXPECT_EQ(cudnnGetProperty(property, &parts[property]), 0);
  EXPECT_EQ(static_cast<std::size_t>(parts[0] * 10000 + parts[1] * 100 + parts[2]), cudnnGetVersion());
  EXPECT_NE(cudnnGetProperty(3, parts), 0);
}

TEST_F(CudaRuntime, RejectsFilesForTheGpuToRead) {
  using Read = ssize_t (*)(void*, void*, std::size_t, off_t, off_t);
  const auto read = reinterpret_cast<Read>(dlsym(RTLD_DEFAULT, "cuFileRead"));
  ASSERT_NE(read, nullptr);
  EXPECT_LT(read(nullptr, nullptr, 1, 0, 0), 0);
}

TEST_F(CudaRuntime, KeepsAnErrorPerThreadUntilItIsRead) {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, 41ULL << 30U), cudaErrorMemoryAllocation);
  std::thread([] { EXPECT_EQ(cudaGetLastError(), cudaSuccess); }).join();
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(CudaRuntime, NamesErrorsLikeCuda) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorApiFailureBase), "unrecognized error code");
}

TEST_F(CudaRuntime, ReportsTheFreeMemory) {
  std::size_t free = 0, total = 0;
  gpu.set_memory_limit(gpu.used_bytes() + 10 * kMiB);
  void* address = nullptr;
  ASSERT_EQ(cudaMalloc(&address, 3 << 20), cudaSuccess);
  EXPECT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(static_cast<Bytes>(free), 6 * kMiB);
  EXPECT_EQ(static_cast<Bytes>(total), load_profile("a100-40gb").memory_bytes);
  EXPECT_EQ(cudaFree(address), cudaSuccess);
}

TEST_F(CudaRuntime, DistinguishesDevicePinnedAndPageableMemory) {
  void *device = nullptr, *pinned = nullptr;
  int pageable = 0;
  ASSERT_EQ(cudaMalloc(&device, 1), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(&pinned, 1, cudaHostAllocDefault), cudaSuccess);
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, device);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, device);
  EXPECT_EQ(attributes.hostPointer, nullptr);
  cudaPointerGetAttributes(&attributes, pinned);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.devicePointer, pinned);
  EXPECT_EQ(attributes.hostPointer, pinned);
  cudaPointerGetAttributes(&attributes, &pageable);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_EQ(attributes.devicePointer, nullptr);
  EXPECT_EQ(attributes.hostPointer, &pageable);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFree(device), cudaSuccess);
}

TEST_F(CudaRuntime, RegistersHostMemoryOnce) {
  std::vector<char> owned(100);
  EXPECT_EQ(cudaHostRegister(owned.data(), 100, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(owned.data(), 100, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(owned.data()), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(owned.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(CudaRuntime, DoesNotKeepTheAnswerNotReady) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  void *device = nullptr, *pinned = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaMalloc(&device, 1 << 28);
  cudaHostAlloc(&pinned, 1 << 28, cudaHostAllocDefault);
  EXPECT_EQ(cudaMemcpyAsync(pinned, device, 1 << 28, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  cudaFree(device);
  cudaFreeHost(pinned);
  cudaEventDestroy(event);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(CudaRuntime, TimesACopyByTheLink) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  void *device = nullptr, *pinned = nullptr;
  cudaMalloc(&device, 1 << 28);
  cudaHostAlloc(&pinned, 1 << 28, cudaHostAllocDefault);
  cudaEventRecord(begin, nullptr);
  cudaMemcpyAsync(device, pinned, 1 << 28, cudaMemcpyHostToDevice, nullptr);
  cudaEventRecord(end, nullptr);
  cudaEventSynchronize(end);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  const DeviceProfile profile = load_profile("a100-40gb");
  const Nanoseconds expected = profile.launch_ns + profile.link.h2d.duration(256 * kMiB);
  EXPECT_EQ(gpu.event_time(end) - gpu.event_time(begin), expected);
  EXPECT_FLOAT_EQ(milliseconds, static_cast<float>(static_cast<double>(expected) / 1e6));
  cudaFree(device);
  cudaFreeHost(pinned);
}

TEST_F(CudaRuntime, RejectsRowsWiderThanAPitch) {
  constexpr std::size_t kWide = 64, kNarrow = 32, kRows = 4;
  void* device = nullptr;
  std::vector<char> host(kWide * kRows);
  ASSERT_EQ(cudaMalloc(&device, kWide * kRows), cudaSuccess);
  const auto copy = [&](std::size_t to_pitch, std::size_t from_pitch) {
    return cudaMemcpy2DAsync(device, to_pitch, host.data(), from_pitch, kWide, kRows, cudaMemcpyHostToDevice,
                             nullptr);
  };
  EXPECT_EQ(copy(kWide, kWide), cudaSuccess);
  EXPECT_EQ(copy(kNarrow, kWide), cudaErrorInvalidValue);
  EXPECT_EQ(copy(kWide, kNarrow), cudaErrorInvalidValue);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  cudaFree(device);
}

TEST_F(CudaRuntime, AcceptsTheHandlesOfDefaultStreams) {
  for (const cudaStream_t stream : {cudaStream_t{nullptr}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  }
}

TEST_F(CudaRuntime, CallsHostFunctions) {
  bool called = false;
  const auto set_true = [](void* flag) { *static_cast<bool*>(flag) = true; };
  EXPECT_EQ(cudaLaunchHostFunc(nullptr, set_true, &called), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_TRUE(called);
}

TEST_F(CudaRuntime, MapsMemoryThroughTheDriver) {
  const auto reserve = driver_function<decltype(&cuMemAddressReserve)>("cuMemAddressReserve");
  const auto create = driver_function<decltype(&cuMemCreate)>("cuMemCreate");
  const auto map = driver_function<decltype(&cuMemMap)>("cuMemMap");
  const auto unmap = driver_function<decltype(&cuMemUnmap)>("cuMemUnmap");
  const auto release = driver_function<decltype(&cuMemRelease)>("cuMemRelease");
  const Bytes before = gpu.used_bytes();
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(reserve(&address, 1ULL << 40U, 0, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(create(&handle, 2 << 20, &properties, 0), CUDA_SUCCESS);
  EXPECT_EQ(map(address, 2 << 20, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(release(handle), CUDA_SUCCESS);
  EXPECT_EQ(gpu.used_bytes() - before, 2 * kMiB);
  EXPECT_EQ(unmap(address, 2 << 20), CUDA_SUCCESS);
  EXPECT_EQ(gpu.used_bytes(), before);
  EXPECT_EQ(create(&handle, 1ULL << 40U, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(CudaRuntime, AcceptsFunctionAttributes) {
  const auto set = driver_function<decltype(&cuFuncSetAttribute)>("cuFuncSetAttribute");
  const auto prefer = driver_function<decltype(&cuFuncSetCacheConfig)>("cuFuncSetCacheConfig");
  EXPECT_EQ(set(nullptr, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024), CUDA_SUCCESS);
  EXPECT_EQ(prefer(nullptr, CU_FUNC_CACHE_PREFER_SHARED), CUDA_SUCCESS);
}

TEST_F(CudaRuntime, ReportsUnknownSizesOfRecurrentLayers) {
  gpu.take_unknown_sizes();
  std::size_t workspace = 7, reserve = 7, input = 7;
  EXPECT_EQ(cudnnGetRNNTempSpaceSizes(nullptr, nullptr, 1, &input, &workspace, &reserve), 0);
  EXPECT_EQ(workspace, 0U);
  EXPECT_EQ(reserve, 0U);
  EXPECT_EQ(input, 7U);
  EXPECT_EQ(gpu.take_unknown_sizes().size(), 1U);
}

TEST_F(CudaRuntime, HasNoUnknownDriverFunction) {
  void* found = this;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion("cuFooBar", &found, 12000, cudaEnableDefault, &result),
            cudaSuccess);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
  EXPECT_EQ(found, nullptr);
}

TEST_F(CudaRuntime, AStreamWaitsForAValueInPinnedMemory) {
  const auto wait = driver_function<decltype(&cuStreamWaitValue32)>("cuStreamWaitValue32");
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  void* word = nullptr;
  ASSERT_EQ(cudaHostAlloc(&word, sizeof(std::uint32_t), cudaHostAllocMapped), cudaSuccess);
  const auto address = reinterpret_cast<CUdeviceptr>(word);
  EXPECT_EQ(wait(stream, address, 0, CU_STREAM_WAIT_VALUE_GEQ), CUDA_SUCCESS);
  EXPECT_EQ(wait(stream, address, 0, CU_STREAM_WAIT_VALUE_EQ), CUDA_ERROR_NOT_SUPPORTED);
  std::uint32_t pageable = 0;
  EXPECT_EQ(wait(stream, reinterpret_cast<CUdeviceptr>(&pageable), 0, CU_STREAM_WAIT_VALUE_GEQ),
            CUDA_ERROR_INVALID_VALUE);
  cudaFreeHost(word);
  cudaStreamDestroy(stream);
  EXPECT_EQ(wait(stream, address, 0, CU_STREAM_WAIT_VALUE_GEQ), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(CudaRuntime, RejectsUnsupportedFunctions) {
  cudaIpcMemHandle_t handle;
  void* address = nullptr;
  int can_access = 1;
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, address), cudaErrorNotSupported);
  EXPECT_EQ(cudaMallocAsync(&address, 1, nullptr), cudaErrorNotSupported);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
  EXPECT_EQ(cudaDeviceCanAccessPeer(&can_access, 0, 1), cudaSuccess);
  EXPECT_EQ(can_access, 0);
}

TEST_F(CudaRuntime, RecordsAnUnimplementedFunction) {
  EXPECT_EQ(cusparseCreate(), 0);
  const std::vector<std::string> unwritten = gpu.unwritten_calls();
  EXPECT_EQ(std::count(unwritten.begin(), unwritten.end(), "cusparseCreate"), 1);
}

}  // namespace
}  // namespace offprof
