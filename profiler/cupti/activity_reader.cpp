#include "profiler/cupti/activity_reader.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace offprof {
namespace {

Nanoseconds time_of(std::uint64_t timestamp) {
  return static_cast<Nanoseconds>(timestamp);
}

GpuMemoryKind memory_kind(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return GpuMemoryKind::kPageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return GpuMemoryKind::kPinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return GpuMemoryKind::kDevice;
    case CUPTI_ACTIVITY_MEMORY_KIND_ARRAY:
      return GpuMemoryKind::kArray;
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
      return GpuMemoryKind::kManaged;
    default:
      return GpuMemoryKind::kUnknown;
  }
}

GpuWaitKind wait_kind(CUpti_ActivitySynchronizationType type) {
  switch (type) {
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
      return GpuWaitKind::kEvent;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
      return GpuWaitKind::kStreamForEvent;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
      return GpuWaitKind::kStream;
    case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
      return GpuWaitKind::kContext;
    default:
      return GpuWaitKind::kUnknown;
  }
}

std::string_view overhead_name(CUpti_ActivityOverheadKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "driver compiler";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "buffer flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "resources";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return "module loading";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return "function loading";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return "command buffer full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
      return "buffer request";
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT:
      return "unified memory";
    default:
      return "other";
  }
}

/// Thrown if the rest of a buffer is smaller than the record that begins there.
struct Broken {};

/// Reads the record as the struct that this was compiled with: later versions of CUPTI add members at its
/// end. Throws Broken.
template <typename Record>
const Record& as(const CUpti_Activity& record, std::size_t bytes_left) {
  if (sizeof(Record) > bytes_left) throw Broken{};
  return reinterpret_cast<const Record&>(record);
}

/// Returns the members that all work on a stream has.
template <typename Record>
StreamWork work_of(const Record& record) {
  StreamWork work;
  work.stream = record.streamId;
  work.correlation = record.correlationId;
  work.begin_ns = time_of(record.start);
  work.end_ns = time_of(record.end);
  return work;
}

}  // namespace

void ActivityReader::read(std::uint8_t* buffer, std::size_t bytes) {
  const std::uint8_t* const end = buffer + bytes;
  CUpti_Activity* record = nullptr;
  CUptiResult result = CUPTI_SUCCESS;
  try {
    while ((result = cupti_.get_next_record(buffer, bytes, &record)) == CUPTI_SUCCESS)
      add(*record, static_cast<std::size_t>(end - reinterpret_cast<const std::uint8_t*>(record)));
  } catch (const Broken&) {
    result = CUPTI_ERROR_INVALID_KIND;
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) ++activity_.unreadable_buffers;
}

void ActivityReader::add(const CUpti_Activity& record, std::size_t bytes_left) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return add(as<CUpti_ActivityKernel10>(record, bytes_left));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return add_copy(as<CUpti_ActivityMemcpy6>(record, bytes_left));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return add_copy(as<CUpti_ActivityMemcpyPtoP4>(record, bytes_left));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return add(as<CUpti_ActivityMemset4>(record, bytes_left));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return add(as<CUpti_ActivityAPI>(record, bytes_left), CUPTI_CB_DOMAIN_RUNTIME_API);
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return add(as<CUpti_ActivityAPI>(record, bytes_left), CUPTI_CB_DOMAIN_DRIVER_API);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return add(as<CUpti_ActivitySynchronization2>(record, bytes_left));
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
      const auto& event = as<CUpti_ActivityCudaEvent2>(record, bytes_left);
      activity_.events.push_back({event.eventId, event.streamId, event.correlationId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& cause = as<CUpti_ActivityExternalCorrelation>(record, bytes_left);
      activity_.causes.push_back({cause.correlationId, cause.externalId});
      return;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      const auto& overhead = as<CUpti_ActivityOverhead3>(record, bytes_left);
      if (is_timed(overhead.start, overhead.end))
        activity_.overheads.push_back(
            {overhead_name(overhead.overheadKind), time_of(overhead.start), time_of(overhead.end)});
      return;
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return add(as<CUpti_ActivityMemory4>(record, bytes_left));
    default:
      ++activity_.other_records;
  }
}

void ActivityReader::add(const CUpti_ActivityKernel10& kernel) {
  StreamWork work = work_of(kernel);
  work.name = intern(kernel.name == nullptr ? "unknown kernel" : kernel.name);
  work.grid = {kernel.gridX, kernel.gridY, kernel.gridZ};
  work.block = {kernel.blockX, kernel.blockY, kernel.blockZ};
  add_work(work);
}

template <typename Copy>
void ActivityReader::add_copy(const Copy& copy) {
  StreamWork work = work_of(copy);
  work.kind = StreamWorkKind::kCopy;
  work.from = memory_kind(copy.srcKind);
  work.to = memory_kind(copy.dstKind);
  work.bytes = static_cast<Bytes>(copy.bytes);
  add_work(work);
}

void ActivityReader::add(const CUpti_ActivityMemset4& set) {
  StreamWork work = work_of(set);
  work.kind = StreamWorkKind::kSet;
  work.to = memory_kind(set.memoryKind);
  work.bytes = static_cast<Bytes>(set.bytes);
  add_work(work);
}

void ActivityReader::add_work(const StreamWork& work) {
  if (is_timed(static_cast<std::uint64_t>(work.begin_ns), static_cast<std::uint64_t>(work.end_ns)))
    activity_.work.push_back(work);
}

void ActivityReader::add(const CUpti_ActivityAPI& call, CUpti_CallbackDomain domain) {
  if (!is_timed(call.start, call.end)) return;
  activity_.calls.push_back({function_name(domain, call.cbid), call.threadId, call.correlationId,
                             time_of(call.start), time_of(call.end)});
}

void ActivityReader::add(const CUpti_ActivitySynchronization2& wait) {
  if (!is_timed(wait.start, wait.end)) return;
  activity_.waits.push_back({wait_kind(wait.type), wait.streamId, wait.cudaEventId, wait.correlationId,
                             time_of(wait.start), time_of(wait.end)});
}

void ActivityReader::add(const CUpti_ActivityMemory4& memory) {
  const bool is_given_back = memory.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  const auto bytes = static_cast<Bytes>(memory.bytes);
  activity_.memory.push_back({memory_kind(memory.memoryKind), memory.address, is_given_back ? -bytes : bytes,
                              time_of(memory.timestamp)});
}

/// Counts records without times: CUPTI writes zeros if it has none.
bool ActivityReader::is_timed(std::uint64_t begin, std::uint64_t end) {
  if (begin > 0 && end >= begin) return true;
  ++activity_.untimed_records;
  return false;
}

std::int32_t ActivityReader::intern(std::string_view name) {
  const auto next = static_cast<std::int32_t>(activity_.names.size());
  const auto [found, is_new] = names_.try_emplace(std::string(name), next);
  if (is_new) activity_.names.emplace_back(name);
  return found->second;
}

/// Returns the name without CUPTI's version suffix: `cudaLaunchKernel` for `cudaLaunchKernel_v7000`.
std::int32_t ActivityReader::function_name(CUpti_CallbackDomain domain, std::uint32_t function) {
  const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(domain)} << 32U | function;
  if (const auto known = functions_.find(key); known != functions_.end()) return known->second;
  const char* text = nullptr;
  std::string name = "call " + std::to_string(function);
  if (cupti_.get_callback_name(domain, function, &text) == CUPTI_SUCCESS && text != nullptr) name = text;
  if (const auto version = name.rfind("_v");
      version != std::string::npos && name.find_first_not_of("0123456789", version + 2) == std::string::npos)
    name.resize(version);
  return functions_.emplace(key, intern(name)).first->second;
}

GpuActivity ActivityReader::take() {
  const auto by_time = [](const auto& a, const auto& b) {
    return std::tie(a.begin_ns, a.end_ns) < std::tie(b.begin_ns, b.end_ns);
  };
  const auto by_correlation = [](const auto& a, const auto& b) { return a.correlation < b.correlation; };
  std::ranges::stable_sort(activity_.work, by_time);
  std::ranges::stable_sort(activity_.calls, by_time);
  std::ranges::stable_sort(activity_.waits, by_time);
  std::ranges::stable_sort(activity_.overheads, by_time);
  std::ranges::stable_sort(activity_.events, by_correlation);
  std::ranges::stable_sort(activity_.causes, by_correlation);
  std::ranges::stable_sort(activity_.memory, {}, &DriverMemory::at_ns);
  names_.clear();
  functions_.clear();
  return std::exchange(activity_, {});
}

}  // namespace offprof
