// Tests of CUPTI's activity interface as a tracer sees it, over the stand-in libraries.
#include <cuda_runtime_api.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_runtime_cbid.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/runtime/access.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kLaunch = 1'000;

/// Records from returned buffers; used by one test at a time.
struct Buffers {
  std::size_t bytes_each = 4096;
  bool has_any = true;
  std::vector<std::vector<char>> records;
};
Buffers* buffers = nullptr;

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = buffers->has_any ? static_cast<std::uint8_t*>(std::calloc(1, buffers->bytes_each)) : nullptr;
  *size = buffers->bytes_each;
  *most_records = 0;
}

template <typename Record>
Record as(const std::vector<char>& bytes) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  return record;
}

std::size_t bytes_of(CUpti_ActivityKind kind) {
  static const std::map<CUpti_ActivityKind, std::size_t> kBytes = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
      {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
      {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
      {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
      {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
      {CUPTI_ACTIVITY_KIND_CUDA_EVENT, sizeof(CUpti_ActivityCudaEvent2)},
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
      {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(CUpti_ActivityMemory4)}};
  return kBytes.at(kind);
}

void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    const char* begin = reinterpret_cast<const char*>(record);
    buffers->records.emplace_back(begin, begin + bytes_of(record->kind));
  }
  std::free(buffer);
}

class VirtualCupti : public testing::Test {
 protected:
  VirtualCupti() {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    options.profile.launch_ns = kLaunch;
    gpu_.configure(options);
    buffers = &got_;
    EXPECT_EQ(subscribe("test"), CUPTI_SUCCESS);
    EXPECT_EQ(cuptiActivityRegisterCallbacks(request, complete), CUPTI_SUCCESS);
  }
  ~VirtualCupti() override {
    for (const CUpti_ActivityKind kind : enabled_) cuptiActivityDisable(kind);
    cuptiActivityFlushAll(0);
    cuptiUnsubscribe(subscriber_);
    for (void* memory : memory_) cudaFree(memory);
    buffers = nullptr;
  }

  CUptiResult subscribe(const char* name, char* holder = nullptr, std::size_t holder_size = 0) {
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = name;
    params.oldSubscriberName = holder;
    params.oldSubscriberSize = holder_size;
    return cuptiSubscribe_v2(&subscriber_, nullptr, nullptr, &params);
  }
  void enable(std::initializer_list<CUpti_ActivityKind> kinds) {
    for (const CUpti_ActivityKind kind : kinds) {
      EXPECT_EQ(cuptiActivityEnable(kind), CUPTI_SUCCESS);
      enabled_.insert(kind);
    }
  }
  void* address_space(std::size_t bytes) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    memory_.push_back(memory);
    return memory;
  }
  static void launch(const char* name, cudaStream_t stream = nullptr) {
    runtime::launch_library_call(stream, name);
  }

  /// Returns the records since the last call.
  std::vector<CUpti_ActivityKind> kinds() {
    cuptiActivityFlushAll(0);
    std::vector<CUpti_ActivityKind> kinds;
    for (const auto& record : got_.records) kinds.push_back(as<CUpti_Activity>(record).kind);
    return kinds;
  }
  template <typename Record>
  std::vector<Record> records(CUpti_ActivityKind kind) {
    cuptiActivityFlushAll(0);
    std::vector<Record> found;
    for (const auto& record : got_.records)
      if (as<CUpti_Activity>(record).kind == kind) found.push_back(as<Record>(record));
    return found;
  }
  auto kernels() { return records<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL); }
  auto copies() { return records<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY); }
  auto calls() { return records<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_RUNTIME); }

  VirtualGpu& gpu_ = *offprof_virtual_gpu();
  Buffers got_;
  CUpti_SubscriberHandle subscriber_ = nullptr;
  std::set<CUpti_ActivityKind> enabled_;
  std::vector<void*> memory_;
};

TEST_F(VirtualCupti, ServesOneSubscriberAndReportsItsName) {
  std::array<char, 64> holder{};
  EXPECT_EQ(subscribe("second", holder.data(), holder.size()),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_STREQ(holder.data(), "test");
}

TEST_F(VirtualCupti, RecordsOnlyEnabledKinds) {
  launch("before");
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  cudaMemset(address_space(64), 0, 64);
  launch("kernel");
  cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  launch("after");
  EXPECT_THAT(kinds(), ElementsAre(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_STREQ(kernels()[0].name, "kernel");
}

TEST_F(VirtualCupti, HasNoObserverIfNothingIsEnabled) {
  EXPECT_EQ(runtime::unconfigured_gpu().observer(), nullptr);
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  EXPECT_NE(runtime::unconfigured_gpu().observer(), nullptr);
  cuptiActivityDisable(CUPTI_ACTIVITY_KIND_RUNTIME);
  EXPECT_EQ(runtime::unconfigured_gpu().observer(), nullptr);
}

TEST_F(VirtualCupti, AKernelRunsAfterItsLaunchOnTheVirtualClocks) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER});
  const Nanoseconds before = gpu_.host_time();
  launch("kernel");
  cudaDeviceSynchronize();
  const auto kernel = kernels().at(0);
  const auto call = records<CUpti_ActivityAPI>(CUPTI_ACTIVITY_KIND_DRIVER).at(0);
  EXPECT_EQ(call.end - call.start, static_cast<std::uint64_t>(kLaunch));
  EXPECT_EQ(kernel.start, call.end);
  EXPECT_EQ(kernel.end - call.start, static_cast<std::uint64_t>(gpu_.host_time() - before));
  EXPECT_EQ(kernel.correlationId, call.correlationId);
  EXPECT_NE(call.correlationId, 0U);
}

TEST_F(VirtualCupti, ACopyRecordHasItsPlacesAndItsCall) {
  void* const device = address_space(1024);
  void* pinned = nullptr;
  cudaMallocHost(&pinned, 1024);
  std::array<char, 1024> pageable{};
  enable({CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaMemcpyAsync(pinned, device, 1024, cudaMemcpyDeviceToHost, nullptr);
  cudaMemcpyAsync(device, pageable.data(), 512, cudaMemcpyHostToDevice, nullptr);
  const auto out = copies().at(0), in = copies().at(1);
  EXPECT_EQ(out.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  EXPECT_EQ(out.srcKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(out.dstKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  EXPECT_EQ(out.bytes, 1024U);
  EXPECT_EQ(in.copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  EXPECT_EQ(in.srcKind, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
  EXPECT_EQ(in.bytes, 512U);
  EXPECT_EQ(calls().at(0).correlationId, out.correlationId);
  EXPECT_EQ(calls().at(0).cbid, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020);
  cudaFreeHost(pinned);
}

TEST_F(VirtualCupti, NumbersEachStream) {
  cudaStream_t first = nullptr, second = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  launch("a", first);
  launch("b", second);
  launch("c", first);
  launch("d");
  const auto all = kernels();
  EXPECT_EQ(all[0].streamId, all[2].streamId);
  EXPECT_NE(all[0].streamId, all[1].streamId);
  EXPECT_EQ(all[3].streamId, 7U);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
}

TEST_F(VirtualCupti, ExternalIdsPrecedeTheirCall) {
  void* const memory = address_space(64);
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 5);
  cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, 6);
  cudaMemset(memory, 0, 64);
  std::uint64_t last = 0;
  cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  EXPECT_EQ(last, 6U);
  cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
  EXPECT_EQ(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last),
            CUPTI_ERROR_QUEUE_EMPTY);
  cudaMemset(memory, 0, 64);
  EXPECT_THAT(kinds(), ElementsAre(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_RUNTIME,
                                   CUPTI_ACTIVITY_KIND_RUNTIME));
  const auto id = records<CUpti_ActivityExternalCorrelation>(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION).at(0);
  EXPECT_EQ(id.externalId, 6U);
  EXPECT_EQ(id.correlationId, calls().at(0).correlationId);
}

TEST_F(VirtualCupti, DoesNotRecordACallThatIsTurnedOff) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION});
  cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 0);
  int device = 0;
  cudaGetDevice(&device);
  EXPECT_THAT(kinds(), IsEmpty());
  cuptiActivityEnableRuntimeApi(CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020, 1);
  cudaGetDevice(&device);
  EXPECT_THAT(kinds(), ElementsAre(CUPTI_ACTIVITY_KIND_RUNTIME));
}

TEST_F(VirtualCupti, RecordsOnlyTheOuterOfNestedCalls) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaEventDestroy(event);
  const auto all = calls();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].cbid, CUPTI_RUNTIME_TRACE_CBID_cudaEventCreate_v3020);
}

TEST_F(VirtualCupti, RecordsTheCallsOfAnEvent) {
  cudaEvent_t event = nullptr;
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, nullptr);
  cudaStreamWaitEvent(nullptr, event, 0);
  cudaEventQuery(event);
  cudaEventSynchronize(event);
  cudaEventDestroy(event);
  std::vector<std::uint32_t> seen;
  for (const auto& call : calls()) seen.push_back(call.cbid);
  EXPECT_THAT(seen, ElementsAre(CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020,
                                CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
                                CUPTI_RUNTIME_TRACE_CBID_cudaStreamWaitEvent_v3020,
                                CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
                                CUPTI_RUNTIME_TRACE_CBID_cudaEventSynchronize_v3020,
                                CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020));
}

TEST_F(VirtualCupti, NamesTheCallsItHasSeen) {
  enable({CUPTI_ACTIVITY_KIND_RUNTIME});
  cudaDeviceSynchronize();
  const char* name = nullptr;
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API,
                                 CUPTI_RUNTIME_TRACE_CBID_cudaDeviceSynchronize_v3020, &name),
            CUPTI_SUCCESS);
  EXPECT_STREQ(name, "cudaDeviceSynchronize_v3020");
  EXPECT_EQ(cuptiGetCallbackName(CUPTI_CB_DOMAIN_NVTX, 1, &name), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(VirtualCupti, RecordsEventsAndWaits) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  enable({CUPTI_ACTIVITY_KIND_CUDA_EVENT, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION});
  cuptiActivityEnableAllSyncRecords(0);
  launch("kernel");
  cudaEventRecord(event, nullptr);
  cudaStreamWaitEvent(stream, event, 0);
  cudaEventQuery(event);  // not reached yet: no record
  cudaEventSynchronize(event);
  const auto recorded = records<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  const auto waits = records<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  ASSERT_EQ(recorded.size(), 1U);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT);
  EXPECT_EQ(waits[0].cudaEventId, recorded[0].eventId);
  EXPECT_NE(waits[0].streamId, recorded[0].streamId);
  EXPECT_EQ(waits[1].type, CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE);
  EXPECT_GT(waits[1].end, waits[1].start);
  cudaEventDestroy(event);
  cudaStreamDestroy(stream);
}

TEST_F(VirtualCupti, RecordsAllocatedAndFreedMemory) {
  enable({CUPTI_ACTIVITY_KIND_MEMORY2});
  void *device = nullptr, *pinned = nullptr;
  cudaMalloc(&device, 2 * kMiB);
  cudaHostAlloc(&pinned, 4096, 0);
  cudaFree(device);
  cudaFreeHost(pinned);
  const auto memory = records<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  ASSERT_EQ(memory.size(), 4U);
  EXPECT_EQ(memory[0].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  EXPECT_EQ(memory[0].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION);
  EXPECT_EQ(memory[0].bytes, static_cast<std::uint64_t>(2 * kMiB));
  EXPECT_EQ(memory[1].memoryKind, CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  EXPECT_EQ(memory[2].memoryOperationType, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE);
  EXPECT_EQ(memory[2].address, memory[0].address);
}

TEST_F(VirtualCupti, ReturnsAFullBufferAndRequestsAnother) {
  got_.bytes_each = 2 * sizeof(CUpti_ActivityKernel10) + 8;
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  for (const char* name : {"a", "b", "c", "d", "e"}) launch(name);
  EXPECT_EQ(got_.records.size(), 4U);
  EXPECT_EQ(kernels().size(), 5U);
}

TEST_F(VirtualCupti, CountsDroppedRecords) {
  enable({CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL});
  got_.has_any = false;
  launch("a");
  launch("b");
  std::size_t dropped = 0;
  EXPECT_EQ(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped), CUPTI_SUCCESS);
  EXPECT_EQ(dropped, 2U);
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  EXPECT_EQ(dropped, 0U);
}

}  // namespace
}  // namespace offprof
