#include "profiler/cupti/cupti_tracer.h"

#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "profiler/cupti/refusal.h"
#include "traces/base/check.h"
#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

constexpr std::array kStreamKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                     CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr std::array kOtherKinds = {
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT,
    CUPTI_ACTIVITY_KIND_MEMORY2,         CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_OVERHEAD,        CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

/// Calls that give the GPU no work. PyTorch makes thousands of them, and the recorder makes those of events.
/// An event record has its own activity record.
constexpr std::array kQuietCalls = {CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventCreateWithFlags_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventRecord_v3020,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventRecordWithFlags_v11010,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaEventElapsedTime_v12080,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaPointerGetAttributes_v4000,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v2_v11030,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaStreamGetCaptureInfo_v12030,
                                    CUPTI_RUNTIME_TRACE_CBID_cudaThreadExchangeStreamCaptureMode_v10010};
/// Driver calls by which libraries launch kernels without the runtime.
constexpr std::array kLaunches = {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                  CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel};

constexpr auto kCauses = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;

/// The pool for CUPTI's callbacks, which have no user argument.
BufferPool* active_pool = nullptr;

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *buffer = active_pool == nullptr ? nullptr : active_pool->take();
  *size = *buffer == nullptr ? 0 : active_pool->bytes_each();
  *most_records = 0;  // no limit on the number of records
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                               std::size_t valid_bytes) {
  if (active_pool != nullptr && buffer != nullptr) active_pool->fill({buffer, valid_bytes});
}

void CUPTIAPI nothing_called_back(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

std::uint64_t CUPTIAPI steady_time() {
  return static_cast<std::uint64_t>(steady_now());
}

}  // namespace

CuptiTracer::CuptiTracer(const CuptiFunctions& cupti, TraceBuffers buffers)
    : cupti_(cupti),
      buffer_bytes_(buffers.count * buffers.bytes_each),
      pool_(buffers.count, buffers.bytes_each),
      reader_(cupti) {
  OFFPROF_CHECK(active_pool == nullptr);
  subscribe();
  try {
    set_attributes();
    require(cupti_.register_timestamp(steady_time), "setting the clock");
    require(cupti_.register_callbacks(buffer_requested, buffer_completed), "registering buffers");
  } catch (...) {
    cupti_.unsubscribe(subscriber_);
    throw;
  }
  active_pool = &pool_;
}

CuptiTracer::~CuptiTracer() {
  disable();
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  cupti_.unsubscribe(subscriber_);
  active_pool = nullptr;
}

void CuptiTracer::subscribe() {
  std::array<char, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> holder{};
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "offprof";
  params.oldSubscriberName = holder.data();
  params.oldSubscriberSize = holder.size();
  const CUptiResult result = cupti_.subscribe(&subscriber_, nothing_called_back, nullptr, &params);
  holder.back() = '\0';
  if (result != CUPTI_SUCCESS) throw cupti_refusal(result, "subscribing", holder.data());
}

/// Sets attributes. A version of CUPTI that does not know one still works, but tracing costs more.
void CuptiTracer::set_attributes() const {
  const auto set = [&](CUpti_ActivityAttribute attribute) {
    std::uint8_t on = 1;
    std::size_t size = sizeof on;
    cupti_.set_attribute(attribute, &size, &on);
  };
  set(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED);
  set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
}

void CuptiTracer::require(CUptiResult result, const char* what) const {
  if (result != CUPTI_SUCCESS) throw cupti_refusal(result, what);
}

TracerInfo CuptiTracer::info() const {
  constexpr std::uint32_t kMajor = 10'000, kMinor = 100;  // 130001 is 13.0.1
  std::uint32_t version = 0;
  cupti_.get_version(&version);
  return {"CUPTI", fmt::format("{}.{}.{}", version / kMajor, version % kMajor / kMinor, version % kMinor),
          static_cast<Bytes>(buffer_bytes_)};
}

void CuptiTracer::begin(TraceDetail detail) {
  const auto enable = [&](CUpti_ActivityKind kind) {
    require(cupti_.enable(kind), "beginning");
    enabled_.push_back(kind);
  };
  disable();  // a traced step may have failed before its end
  drain();
  reader_.take();
  if (detail == TraceDetail::kAll) {
    for (const auto kind : kOtherKinds) enable(kind);
    for (const auto call : kQuietCalls) cupti_.enable_runtime_api(call, 0);
    for (const auto call : kLaunches) cupti_.enable_driver_api(call, 1);
    cupti_.enable_all_sync_records(0);
  }
  for (const auto kind : kStreamKinds) enable(kind);
  has_causes_ = detail == TraceDetail::kAll;
}

void CuptiTracer::disable() {
  if (std::exchange(has_causes_, false))
    for (const auto call : kLaunches) cupti_.enable_driver_api(call, 0);
  for (const CUpti_ActivityKind kind : enabled_) cupti_.disable(kind);
  enabled_.clear();
}

void CuptiTracer::drain() {
  cupti_.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  while (const auto filled = pool_.next_filled()) {
    reader_.read(filled->data, filled->bytes);
    pool_.give_back(*filled);
  }
}

GpuActivity CuptiTracer::end() {
  disable();
  drain();
  GpuActivity activity = reader_.take();
  cupti_.get_dropped_records(nullptr, 0, &activity.dropped_records);
  return activity;
}

void CuptiTracer::push(std::uint64_t id) {
  if (has_causes_) cupti_.push_external_id(kCauses, id);
}

void CuptiTracer::pop() {
  std::uint64_t last = 0;
  if (has_causes_) cupti_.pop_external_id(kCauses, &last);
}

}  // namespace offprof
