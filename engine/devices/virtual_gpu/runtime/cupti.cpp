#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "engine/devices/virtual_gpu/runtime/cupti_recorder.h"

// CUPTI's activity interface. Its callback interface is not simulated: LibTorch would use it only for
// PyTorch's own profiler, which offprof never starts.

using namespace offprof;  // NOLINT(google-build-using-namespace)

namespace {

/// Name of the subscriber; empty: there is none.
std::string& subscriber_name() {
  static auto* const name = new std::string;
  return *name;
}

CUptiResult refuse_second(const CUpti_SubscriberParams& params) {
  if (params.oldSubscriberName != nullptr && params.oldSubscriberSize > 0) {
    const std::size_t length = std::min(subscriber_name().size(), params.oldSubscriberSize - 1);
    std::memcpy(params.oldSubscriberName, subscriber_name().data(), length);
    params.oldSubscriberName[length] = '\0';
  }
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

std::optional<CallDomain> domain_of(CUpti_CallbackDomain domain) {
  if (domain == CUPTI_CB_DOMAIN_RUNTIME_API) return CallDomain::kRuntime;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) return CallDomain::kDriver;
  return std::nullopt;
}

bool is_kind(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

}  // namespace

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  const auto of = domain_of(domain);
  *name = of ? CuptiRecorder::get().name_of(*of, id) : nullptr;
  return *name == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*,
                              CUpti_SubscriberParams* params) {
  if (!subscriber_name().empty()) return refuse_second(*params);
  subscriber_name() = params->subscriberName == nullptr ? "somebody" : params->subscriberName;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&subscriber_name());
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle) {
  subscriber_name().clear();
  return CUPTI_SUCCESS;
}

// Records take no memory of the virtual GPU, and their times are always on its clocks.
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, std::size_t*, void*) {
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc) {
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  CuptiRecorder::get().set_buffer_callbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  return CuptiRecorder::get().enable(kind, true) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  return CuptiRecorder::get().enable(kind, false) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t on) {
  CuptiRecorder::get().enable_call(CallDomain::kRuntime, id, on != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId id, std::uint8_t on) {
  CuptiRecorder::get().enable_call(CallDomain::kDriver, id, on != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableAllSyncRecords(std::uint8_t on) {
  CuptiRecorder::get().enable_all_sync_records(on != 0);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  CuptiRecorder::get().flush();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes,
                                       CUpti_Activity** record) {
  return next_cupti_record(buffer, valid_bytes, record);
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t, std::size_t* dropped) {
  *dropped = CuptiRecorder::get().take_dropped();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (!is_kind(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  external_ids(kind).push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  if (!is_kind(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  std::vector<std::uint64_t>& ids = external_ids(kind);
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}

}  // extern "C"
