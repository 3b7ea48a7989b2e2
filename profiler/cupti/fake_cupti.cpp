#include "profiler/cupti/fake_cupti.h"

#include <algorithm>

namespace offprof {
namespace {

std::size_t bytes_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
      return sizeof(CUpti_ActivityCudaEvent2);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_NAME:
      return sizeof(CUpti_ActivityName);
    default:
      return 0;
  }
}

}  // namespace

CUptiResult FakeCupti::called(const char* name) {
  calls.emplace_back(name);
  const auto result = results.find(name);
  return result == results.end() ? CUPTI_SUCCESS : result->second;
}

void FakeCupti::append(const void* record, std::size_t bytes) {
  if (buffer_ != nullptr && used_ + bytes > size_) {
    complete(buffer_, used_);
    buffer_ = nullptr;
  }
  if (buffer_ == nullptr) {
    std::size_t most_records = 0;
    used_ = 0;
    requested_(&buffer_, &size_, &most_records);
  }
  if (buffer_ == nullptr || bytes > size_) {
    ++dropped_;
    return;
  }
  std::memcpy(buffer_ + used_, record, bytes);
  used_ += bytes;
}

void FakeCupti::set_aside() {
  if (buffer_ != nullptr) aside_.emplace_back(buffer_, used_);
  buffer_ = nullptr;
}

void FakeCupti::flush() {
  if (buffer_ != nullptr) complete(buffer_, used_);
  buffer_ = nullptr;
  for (const auto& [buffer, used] : aside_) complete(buffer, used);
  aside_.clear();
}

CuptiFunctions FakeCupti::functions() {
  CuptiFunctions cupti;
  cupti.get_callback_name = [](CUpti_CallbackDomain, std::uint32_t number, const char** name) {
    *name = number == 1 ? "cudaLaunchKernel_v7000" : number == 2 ? "cudaMemcpyAsync_v3020" : nullptr;
    return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
  };
  cupti.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*, CUpti_SubscriberParams* params) {
    const CUptiResult result = get().called("Subscribe");
    const std::size_t length = std::min(get().holder.size(), params->oldSubscriberSize - 1);
    std::memcpy(params->oldSubscriberName, get().holder.data(), length);
    get().is_subscribed = result == CUPTI_SUCCESS;
    return result;
  };
  cupti.unsubscribe = [](CUpti_SubscriberHandle) {
    get().is_subscribed = false;
    return get().called("Unsubscribe");
  };
  cupti.set_attribute = [](CUpti_ActivityAttribute attribute, std::size_t*, void*) {
    get().attributes.insert(attribute);
    return get().called("ActivitySetAttribute");
  };
  cupti.register_timestamp = [](CUpti_TimestampCallbackFunc) {
    return get().called("ActivityRegisterTimestampCallback");
  };
  cupti.register_callbacks = [](CUpti_BuffersCallbackRequestFunc requested,
                                CUpti_BuffersCallbackCompleteFunc completed) {
    get().requested_ = requested;
    get().completed_ = completed;
    return get().called("ActivityRegisterCallbacks");
  };
  cupti.enable = [](CUpti_ActivityKind kind) {
    get().enabled.insert(kind);
    return get().called("ActivityEnable");
  };
  cupti.disable = [](CUpti_ActivityKind kind) {
    get().enabled.erase(kind);
    return get().called("ActivityDisable");
  };
  cupti.enable_runtime_api = [](CUpti_CallbackId call, std::uint8_t on) {
    if (on == 0) get().quiet_runtime_calls.insert(call);
    return CUPTI_SUCCESS;
  };
  cupti.enable_driver_api = [](CUpti_CallbackId call, std::uint8_t on) {
    if (on == 0)
      get().driver_calls.erase(call);
    else
      get().driver_calls.insert(call);
    return CUPTI_SUCCESS;
  };
  cupti.enable_all_sync_records = [](std::uint8_t) { return get().called("ActivityEnableAllSyncRecords"); };
  cupti.flush_all = [](std::uint32_t) {
    get().flush();
    return get().called("ActivityFlushAll");
  };
  cupti.get_next_record = [](std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record) {
    auto* const next =
        *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + bytes_of((*record)->kind);
    if (next >= buffer + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    const std::size_t size = bytes_of((*record)->kind);
    return size == 0 || next + size > buffer + bytes ? CUPTI_ERROR_INVALID_KIND : CUPTI_SUCCESS;
  };
  cupti.get_dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(get().dropped_, 0);
    return CUPTI_SUCCESS;
  };
  cupti.push_external_id = [](CUpti_ExternalCorrelationKind, std::uint64_t id) {
    get().external_ids.push_back(id);
    return CUPTI_SUCCESS;
  };
  cupti.pop_external_id = [](CUpti_ExternalCorrelationKind, std::uint64_t* id) {
    if (get().external_ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    *id = get().external_ids.back();
    get().external_ids.pop_back();
    return CUPTI_SUCCESS;
  };
  return cupti;
}

}  // namespace offprof
