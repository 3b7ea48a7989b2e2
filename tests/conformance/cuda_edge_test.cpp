// Tests of the CUDA device with a runtime that has two GPUs, tracks the current one of each thread, and fails
// calls on request. The rest is the virtual GPU: the functions below take precedence over those of the
// stand-in runtime.
#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "engine/autograd/offload_step.h"
#include "engine/devices/factory/device_factory.h"
#include "engine/devices/host_memory.h"
#include "engine/devices/link_calibration.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace {

constexpr int kGpus = 2;

/// Settings of the runtime and counts of its calls.
struct Edge {
  int gpu = 0;                           ///< the GPU in use: the default stream of another one is a mistake
  std::set<std::string> on_another_gpu;  ///< functions that were called while another GPU was current
  bool fails_events = false;             ///< true: recording an event fails
  bool has_wait_value = true;            ///< the driver has cuStreamWaitValue32
  int value_waits = 0;                   ///< calls of cuStreamWaitValue32
  int host_calls = 0;                    ///< calls of cudaLaunchHostFunc
  offprof::Nanoseconds record_ns = 0;    ///< host time to record an event
  int quick_records = 0;                 ///< number of events recorded without cost before that
};

Edge edge;
thread_local int current_gpu = 0;

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void see(const char* function) {
  if (current_gpu != edge.gpu) edge.on_another_gpu.insert(function);
}

CUresult (*next_wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = nullptr;

CUresult counted_wait_value(CUstream stream, CUdeviceptr word, cuuint32_t value, unsigned flags) {
  ++edge.value_waits;
  return next_wait_value(stream, word, value, flags);
}

}  // namespace

/// Calls the stand-in runtime's function of that name.
#define NEXT(function) next(&function, #function)

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_gpu;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return cudaErrorInvalidDevice;
  current_gpu = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return NEXT(cudaGetDeviceProperties)(properties, 0);
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  return NEXT(cudaDeviceGetAttribute)(value, attribute, 0);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  see("cudaEventCreateWithFlags");
  return NEXT(cudaEventCreateWithFlags)(event, flags);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  see("cudaEventRecord");
  if (edge.fails_events) return cudaErrorIllegalAddress;
  offprof::VirtualGpu& gpu = *offprof_virtual_gpu();
  if (--edge.quick_records < 0) gpu.hold_host(gpu.host_time() + edge.record_ns);
  return NEXT(cudaEventRecord)(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  see("cudaStreamWaitEvent");
  return NEXT(cudaStreamWaitEvent)(stream, event, flags);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  see("cudaMemcpyAsync");
  return NEXT(cudaMemcpyAsync)(to, from, bytes, kind, stream);
}

cudaError_t cudaDeviceSynchronize() {
  see("cudaDeviceSynchronize");
  return NEXT(cudaDeviceSynchronize)();
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  see("cudaHostAlloc");
  return NEXT(cudaHostAlloc)(memory, bytes, flags);
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  see("cudaMalloc");
  return NEXT(cudaMalloc)(memory, bytes);
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  see("cudaMemGetInfo");
  return NEXT(cudaMemGetInfo)(free, total);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  see("cudaLaunchHostFunc");
  ++edge.host_calls;
  return NEXT(cudaLaunchHostFunc)(stream, function, data);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result) {
  const cudaError_t error = NEXT(cudaGetDriverEntryPointByVersion)(name, function, version, flags, result);
  if (std::string(name) != "cuStreamWaitValue32") return error;
  next_wait_value = reinterpret_cast<decltype(next_wait_value)>(*function);
  *function = edge.has_wait_value ? reinterpret_cast<void*>(&counted_wait_value) : nullptr;
  if (!edge.has_wait_value) *result = cudaDriverEntryPointSymbolNotFound;
  return error;
}

}  // extern "C"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Bytes kBytes = 3 * kMiB;

class CudaEdge : public testing::Test {
 protected:
  CudaEdge() {
    edge = {};
    current_gpu = 0;
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    offprof_virtual_gpu()->configure(std::move(options));
  }
  ~CudaEdge() override {
    if (!device_) return;
    device_->synchronize();
    device_->release_cache();
  }

  Device& open(int gpu) {
    edge.gpu = gpu;
    device_ = make_device("cuda:" + std::to_string(gpu), Link{});
    return *device_;
  }
  Device& device() { return *device_; }

  at::Tensor tensor(Bytes bytes = kBytes) {
    return at::empty({bytes}, at::TensorOptions(device_->torch_device()).dtype(at::kByte));
  }
  Device::Event copy_out(const at::Tensor& from, const HostMemory& to) {
    return device_->copy(CopyQueue::kD2h, {to.get(), from.const_data_ptr(), static_cast<Bytes>(from.nbytes()),
                                           CopyDirection::kD2h, 0});
  }
  Device::Event copy_in(const HostMemory& from, const at::Tensor& to) {
    return device_->copy(CopyQueue::kH2d, {to.mutable_data_ptr(), from.get(), static_cast<Bytes>(to.nbytes()),
                                           CopyDirection::kH2d, 0});
  }

  /// Returns a stream that is neither the default one nor a copy queue's.
  c10::Stream other_stream() {
    return c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(device_->torch_device());
  }
  std::shared_ptr<OffloadStep> step() {
    Policy policy = preset_policy("offload");
    policy.threshold_bytes = 0;
    return std::make_shared<OffloadStep>(device(), policy, StepGuide(), std::make_shared<const Residents>(),
                                         nullptr);
  }

  TestFolder folder_;

 private:
  std::unique_ptr<Device> device_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return {};
}

// --- Several GPUs ---

TEST_F(CudaEdge, WorksOnItsOwnGpuWhileAnotherIsCurrent) {
  open(1);
  const at::Tensor there = tensor();
  current_gpu = 0;
  edge.on_another_gpu.clear();
  {
    const HostMemory host(device(), kBytes);
    const Device::TimeMark mark = device().mark();
    device().wait(CopyQueue::kD2h, copy_out(there, host));
    device().copy_out_densely(CopyQueue::kD2h, there.view({2, -1}).t(), host.get(), 0);
    device().wait(CopyQueue::kH2d, copy_in(host, there));
    const c10::Storage storage = device().allocate(kBytes);
    device().synchronize();
    EXPECT_GE(device().time_of(mark), 0);
    device().take_copy_records();
    device().used_beside_allocator();
    device().forget_marks();
    calibrate_copies(device());
    device().release_cache();
  }
  EXPECT_THAT(edge.on_another_gpu, IsEmpty());
  EXPECT_EQ(current_gpu, 0) << "the caller's current GPU must not change";
}

TEST_F(CudaEdge, ItsDiskWorksOnItsOwnGpuWhileAnotherIsCurrent) {
  open(1).open_disk({.folder = folder_.path()});
  const at::Tensor there = tensor();
  current_gpu = 0;
  edge.on_another_gpu.clear();
  {
    const HostMemory host(device(), kBytes);
    DeviceDisk& disk = *device().disk();
    const Extent extent = disk.reserve(kBytes, nullptr).value();
    disk.wait(disk.write(extent, host.get(), kBytes, CopyQueue::kD2h, 0));
    const auto read = disk.read(extent, host.get(), kBytes, 0);
    disk.hold(CopyQueue::kH2d, read);
    device().wait(CopyQueue::kH2d, copy_in(host, there));
    disk.wait(read);
    disk.release(extent);
    disk.take_records();
    device().synchronize();
  }
  EXPECT_THAT(edge.on_another_gpu, IsEmpty());
  EXPECT_EQ(current_gpu, 0);
}

TEST_F(CudaEdge, QueuesWaitForTheDiskInHostCallsIfTheDriverCannotWaitForAValue) {
  for (const bool has_wait_value : {true, false}) {
    edge.has_wait_value = has_wait_value;
    open(0).open_disk({.folder = folder_.path()});
    edge.value_waits = 0;
    edge.host_calls = 0;
    const HostMemory host(device(), kBytes);
    DeviceDisk& disk = *device().disk();
    const Extent extent = disk.reserve(kBytes, nullptr).value();
    disk.wait(disk.write(extent, host.get(), kBytes, CopyQueue::kD2h, 0));
    const auto read = disk.read(extent, host.get(), kBytes, 0);
    disk.hold(CopyQueue::kH2d, read);
    disk.wait(read);
    EXPECT_EQ(edge.value_waits, has_wait_value ? 1 : 0);
    EXPECT_EQ(edge.host_calls, has_wait_value ? 2 : 3) << "to write, to read, and to wait";
  }
}

TEST_F(CudaEdge, AnotherThreadMarksItsOwnGpu) {
  open(1);
  edge.on_another_gpu.clear();
  std::thread([&] { device().mark(); }).join();
  EXPECT_THAT(edge.on_another_gpu, IsEmpty());
}

// --- Failing calls ---

TEST_F(CudaEdge, AFailedMarkDoesNotThrowAndKeepsTheFirstFailure) {
  open(0);
  edge.fails_events = true;
  EXPECT_EQ(device().mark(), Device::kFailedMark);
  device().mark();
  edge.fails_events = false;
  EXPECT_NE(device().mark(), Device::kFailedMark);
  EXPECT_THAT(message_of([&] { check_marks(device()); }),
              HasSubstr("CUDA cannot record an event: an illegal memory access was encountered"));
  EXPECT_EQ(message_of([&] { check_marks(device()); }), "") << "the failure was reported already";
}

TEST_F(CudaEdge, AFailedMarkHasNoTime) {
  open(0);
  EXPECT_THROW(device().time_of(Device::kFailedMark), Error);
}

TEST_F(CudaEdge, ForgettingMarksForgetsTheirFailure) {
  open(0);
  edge.fails_events = true;
  device().mark();
  edge.fails_events = false;
  device().forget_marks();
  EXPECT_EQ(device().take_mark_failure(), nullptr);
}

// --- Time ---

TEST_F(CudaEdge, CostOfEventsOnTheHostIsNotExposedTime) {
  open(0);
  const at::Tensor there = tensor();
  const HostMemory host(device(), kBytes);
  const Device::Event copied = copy_out(there, host);
  device().synchronize();
  edge.record_ns = 50'000;
  device().wait(CopyQueue::kD2h, copied);
  device().synchronize();
  EXPECT_EQ(device().take_exposed_ns(), 0);
}

/// The two events around the wait are a second apart, a thousand times the duration of the copy.
TEST_F(CudaEdge, ExposedTimeEndsWithTheCopy) {
  open(0);
  const at::Tensor there = tensor(64 * kMiB);
  const HostMemory host(device(), 64 * kMiB);
  const Device::Event copied = copy_out(there, host);
  const Device::TimeMark before = device().mark();
  edge.record_ns = 1'000'000'000;
  edge.quick_records = 1;
  device().wait(CopyQueue::kD2h, copied);
  edge.record_ns = 0;
  const std::vector<CopyRecord> records = device().take_copy_records();
  const Nanoseconds exposed = records.at(0).end_ns - device().time_of(before);
  ASSERT_GT(exposed, 100'000);
  EXPECT_NEAR(static_cast<double>(device().take_exposed_ns()), static_cast<double>(exposed), 1000);
}

// --- Refusals ---

TEST_F(CudaEdge, RefusesComputeOnAnotherStream) {
  open(1);
  const auto offloaded = step();
  const at::Tensor saved = tensor();
  const c10::StreamGuard on_another(other_stream());
  EXPECT_THAT(message_of([&] { offloaded->pack(saved); }),
              AllOf(HasSubstr("a CUDA stream of its own"), HasSubstr("default stream of cuda:1"),
                    HasSubstr("| run the model on the default stream")));
  EXPECT_TRUE(device().take_stream_refusal().has_value());
}

TEST_F(CudaEdge, RefusesTensorsComputedOnAnotherStream) {
  open(0);
  const auto offloaded = step();
  at::Tensor saved;
  {
    const c10::StreamGuard on_another(other_stream());
    saved = tensor();
  }
  EXPECT_THAT(message_of([&] { offloaded->pack(saved); }), HasSubstr("a CUDA stream of its own"));
}

TEST_F(CudaEdge, MemoryOfAnotherStreamIsAllowedWhereItStays) {
  open(0);
  const auto batch_of_another_stream = [&] {
    const c10::StreamGuard on_another(other_stream());
    return tensor();
  };
  StepGuide moving;
  moving.moves_inputs = true;
  OffloadStep offloaded(device(), preset_policy("offload"), moving, std::make_shared<Residents>(), nullptr);
  const at::Tensor batch = batch_of_another_stream();
  EXPECT_NO_THROW(offloaded.pack(tensor()));
  offloaded.add_inputs({&batch, 1});
  EXPECT_NO_THROW(offloaded.pack(batch));
  EXPECT_EQ(offloaded.d2h_bytes(), tensor().nbytes());
}

TEST_F(CudaEdge, RefusesBlockingLaunches) {
  setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
  const std::string message = message_of([&] { open(0); });
  setenv("CUDA_LAUNCH_BLOCKING", "0", 1);
  EXPECT_EQ(message_of([&] { open(0); }), "");
  unsetenv("CUDA_LAUNCH_BLOCKING");
  EXPECT_THAT(message, AllOf(HasSubstr("CUDA_LAUNCH_BLOCKING=1"), HasSubstr("| unset CUDA_LAUNCH_BLOCKING")));
}

}  // namespace
}  // namespace offprof
