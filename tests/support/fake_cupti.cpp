#include "tests/support/fake_cupti.h"

#include <algorithm>

namespace offprof {

CUptiResult FakeCupti::called(const char* name) {
  calls.emplace_back(name);
  const auto result = results.find(name);
  return result == results.end() ? CUPTI_SUCCESS : result->second;
}

void FakeCupti::set_aside() {
  aside_.push_back(buffer_);
  buffer_.forget();
}

void FakeCupti::flush() {
  buffer_.hand_back();
  for (CuptiBuffer& buffer : aside_) buffer.hand_back();
  aside_.clear();
}

CuptiFunctions FakeCupti::functions() {
  CuptiFunctions cupti;
  set_session_functions(cupti);
  set_record_functions(cupti);
  return cupti;
}

void FakeCupti::set_session_functions(CuptiFunctions& cupti) {
  cupti.get_version = [](std::uint32_t* version) {
    *version = 130'102;
    return CUPTI_SUCCESS;
  };
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
    get().buffer_.set_callbacks(requested, completed);
    return get().called("ActivityRegisterCallbacks");
  };
}

void FakeCupti::set_record_functions(CuptiFunctions& cupti) {
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
  cupti.get_next_record = next_cupti_record;
  cupti.get_dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = get().buffer_.take_dropped();
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
}

}  // namespace offprof
