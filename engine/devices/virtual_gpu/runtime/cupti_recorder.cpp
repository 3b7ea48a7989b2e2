#include "engine/devices/virtual_gpu/runtime/cupti_recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "engine/devices/virtual_gpu/runtime/access.h"

namespace offprof {
namespace {

/// CUPTI's number of the legacy default stream in a process with one context; other streams follow.
constexpr std::uint32_t kFirstStream = 7;
constexpr std::uint32_t kContext = 1;

/// Correlation id of this thread's current call; 0: there is none.
thread_local std::uint32_t current_correlation = 0;

std::uint64_t timestamp(Nanoseconds time) {
  return static_cast<std::uint64_t>(CuptiRecorder::kEpoch + time);
}

std::uint32_t this_thread() {
  thread_local const auto id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return id;
}

CUpti_ActivityMemoryKind memory_kind(MemoryPlace place) {
  switch (place) {
    case MemoryPlace::kDevice:
      return CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    case MemoryPlace::kPinned:
      return CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    case MemoryPlace::kPageable:
      break;
  }
  return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

CUpti_ActivityMemcpyKind copy_kind(MemoryPlace to, MemoryPlace from) {
  const bool to_device = to == MemoryPlace::kDevice, from_device = from == MemoryPlace::kDevice;
  if (to_device) return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  return from_device ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOH : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

CUpti_ActivitySynchronizationType wait_type(WaitedFor what) {
  switch (what) {
    case WaitedFor::kEvent:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    case WaitedFor::kStream:
      return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    case WaitedFor::kDevice:
      break;
  }
  return CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
}

/// Returns a record whose other members are 0. The padding is also 0, since the record's bytes are copied.
template <typename Record>
Record record_of(CUpti_ActivityKind kind) {
  Record record;
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  return record;
}

/// Returns a record with the members that all work has.
template <typename Record>
Record work_record(CUpti_ActivityKind kind, std::uint32_t stream, TimeSpan time) {
  auto record = record_of<Record>(kind);
  record.start = timestamp(time.begin);
  record.end = timestamp(time.end);
  record.contextId = kContext;
  record.streamId = stream;
  record.correlationId = current_correlation;
  return record;
}

}  // namespace

std::vector<std::uint64_t>& external_ids(CUpti_ExternalCorrelationKind kind) {
  thread_local std::array<std::vector<std::uint64_t>, CUPTI_EXTERNAL_CORRELATION_KIND_SIZE> ids;
  return ids.at(kind);
}

CuptiRecorder& CuptiRecorder::get() {
  static auto* const recorder = new CuptiRecorder;
  return *recorder;
}

void CuptiRecorder::set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request,
                                         CUpti_BuffersCallbackCompleteFunc complete) {
  const Lock lock(mutex_);
  buffer_.set_callbacks(request, complete);
}

bool CuptiRecorder::enable(CUpti_ActivityKind kind, bool on) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) return false;
  const Lock lock(mutex_);
  enabled_.set(kind, on);
  runtime::unconfigured_gpu().set_observer(enabled_.any() ? this : nullptr);
  return true;
}

void CuptiRecorder::enable_call(CallDomain domain, std::uint32_t id, bool on) {
  const Lock lock(mutex_);
  call_choices_[{domain, id}] = on;
}

void CuptiRecorder::enable_all_sync_records(bool on) {
  const Lock lock(mutex_);
  all_sync_records_ = on;
}

void CuptiRecorder::flush() {
  const Lock lock(mutex_);
  buffer_.hand_back();
}

std::size_t CuptiRecorder::take_dropped() {
  const Lock lock(mutex_);
  return buffer_.take_dropped();
}

const char* CuptiRecorder::name_of(CallDomain domain, std::uint32_t id) {
  const Lock lock(mutex_);
  const auto found = call_names_.find({domain, id});
  return found == call_names_.end() ? nullptr : found->second;
}

void CuptiRecorder::on_call_begin() {
  const Lock lock(mutex_);
  current_correlation = ++last_correlation_;
}

void CuptiRecorder::on_call_end(const ApiCall& call, TimeSpan host) {
  const Lock lock(mutex_);
  const CallKey key{call.domain, call.id};
  call_names_.emplace(key, call.name);
  if (is_recorded(key)) {
    record_external_ids();
    auto record = record_of<CUpti_ActivityAPI>(
        call.domain == CallDomain::kRuntime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER);
    record.cbid = call.id;
    record.start = timestamp(host.begin);
    record.end = timestamp(host.end);
    record.processId = static_cast<std::uint32_t>(getpid());
    record.threadId = this_thread();
    record.correlationId = current_correlation;
    buffer_.append(&record, sizeof record);
  }
  current_correlation = 0;
}

bool CuptiRecorder::is_recorded(const CallKey& call) const {
  if (const auto choice = call_choices_.find(call); choice != call_choices_.end()) {
    // A call that is turned off is not recorded. A driver call that is turned on is recorded even if its kind
    // is off.
    if (!choice->second) return false;
    if (call.first == CallDomain::kDriver) return true;
  }
  return is_enabled(call.first == CallDomain::kRuntime ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                       : CUPTI_ACTIVITY_KIND_DRIVER);
}

void CuptiRecorder::record_external_ids() {
  for (int kind = CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN; kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
       ++kind) {
    const auto external_kind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    const std::vector<std::uint64_t>& ids = external_ids(external_kind);
    if (ids.empty()) continue;
    emit(CUpti_ActivityExternalCorrelation{CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, external_kind,
                                           ids.back(), current_correlation, 0});
  }
}

void CuptiRecorder::on_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol,
                              TimeSpan time) {
  const Lock lock(mutex_);
  auto record =
      work_record<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, stream_number(stream), time);
  record.completed = record.end;
  record.gridX = static_cast<std::int32_t>(launch.grid[0]);
  record.gridY = static_cast<std::int32_t>(launch.grid[1]);
  record.gridZ = static_cast<std::int32_t>(launch.grid[2]);
  record.blockX = static_cast<std::int32_t>(launch.block[0]);
  record.blockY = static_cast<std::int32_t>(launch.block[1]);
  record.blockZ = static_cast<std::int32_t>(launch.block[2]);
  record.name = kernel_names_.emplace(symbol).first->c_str();
  emit(record);
}

void CuptiRecorder::on_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan time) {
  const Lock lock(mutex_);
  auto record = work_record<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, stream_number(stream), time);
  record.copyKind = static_cast<std::uint8_t>(copy_kind(to, from));
  record.srcKind = static_cast<std::uint8_t>(memory_kind(from));
  record.dstKind = static_cast<std::uint8_t>(memory_kind(to));
  record.bytes = static_cast<std::uint64_t>(bytes);
  record.copyCount = 1;
  emit(record);
}

void CuptiRecorder::on_set(StreamId stream, int value, Bytes bytes, TimeSpan time) {
  const Lock lock(mutex_);
  auto record = work_record<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, stream_number(stream), time);
  record.value = static_cast<std::uint32_t>(value);
  record.bytes = static_cast<std::uint64_t>(bytes);
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  emit(record);
}

void CuptiRecorder::on_event_recorded(StreamId stream, EventId event) {
  const Lock lock(mutex_);
  auto record = record_of<CUpti_ActivityCudaEvent2>(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  record.correlationId = current_correlation;
  record.contextId = kContext;
  record.streamId = stream_number(stream);
  record.eventId = event_number(event);
  emit(record);
}

void CuptiRecorder::on_stream_waits(StreamId stream, EventId event, Nanoseconds host) {
  const Lock lock(mutex_);
  auto record = work_record<CUpti_ActivitySynchronization2>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                                            stream_number(stream), {host, host});
  record.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  record.cudaEventId = event_number(event);
  emit(record);
}

void CuptiRecorder::on_host_waits(WaitedFor what, const void* id, TimeSpan host, bool is_done) {
  const Lock lock(mutex_);
  if (!is_done && !all_sync_records_) return;
  const bool is_stream = what == WaitedFor::kStream;
  auto record = work_record<CUpti_ActivitySynchronization2>(
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
      is_stream ? stream_number(id) : CUPTI_SYNCHRONIZATION_INVALID_VALUE, host);
  record.type = wait_type(what);
  record.cudaEventId = what == WaitedFor::kEvent ? event_number(id) : CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  emit(record);
}

void CuptiRecorder::on_memory(MemoryPlace place, const void* address, Bytes bytes, Nanoseconds host) {
  const Lock lock(mutex_);
  auto record = record_of<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  record.memoryOperationType = bytes > 0 ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  record.memoryKind = memory_kind(place);
  record.correlationId = current_correlation;
  record.address = reinterpret_cast<std::uint64_t>(address);
  record.bytes = static_cast<std::uint64_t>(bytes > 0 ? bytes : -bytes);
  record.timestamp = timestamp(host);
  record.contextId = kContext;
  emit(record);
}

std::uint32_t CuptiRecorder::stream_number(StreamId stream) {
  if (stream == nullptr) return kFirstStream;
  const auto next = static_cast<std::uint32_t>(kFirstStream + 1 + streams_.size());
  return streams_.try_emplace(stream, next).first->second;
}

std::uint32_t CuptiRecorder::event_number(EventId event) {
  return events_.try_emplace(event, static_cast<std::uint32_t>(events_.size() + 1)).first->second;
}

}  // namespace offprof
