#pragma once

#include <cupti_activity.h>
#include <cupti_callbacks.h>

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/runtime/cupti_buffer.h"
#include "engine/devices/virtual_gpu/state/gpu_observer.h"

namespace offprof {

/// Writes CUPTI's activity records for the work of the virtual GPU, in the layout of CUPTI 13.0, into buffers
/// that it requests from the tracer. The records of a call share one correlation id, and the external ids of
/// the thread precede the call's record. Writes only enabled kinds. Times are on the virtual clocks, counted
/// from kEpoch.
class CuptiRecorder final : public GpuObserver {
 public:
  /// The virtual clocks begin at 0, which CUPTI uses for a missing time.
  static constexpr Nanoseconds kEpoch = 1'000'000'000;

  /// Returns the recorder of the process, which is never destroyed.
  static CuptiRecorder& get();

  void set_buffer_callbacks(CUpti_BuffersCallbackRequestFunc request,
                            CUpti_BuffersCallbackCompleteFunc complete);
  /// Returns false if there is no such kind.
  bool enable(CUpti_ActivityKind kind, bool on);
  void enable_call(CallDomain domain, std::uint32_t id, bool on);
  void enable_all_sync_records(bool on);
  /// Returns the current buffer to the tracer.
  void flush();
  /// Returns the number of records dropped since the last call.
  std::size_t take_dropped();
  /// Returns the name of a call that was made while tracing was on; nullptr: there was no such call.
  const char* name_of(CallDomain domain, std::uint32_t id);

  void on_call_begin() override;
  void on_call_end(const ApiCall& call, TimeSpan host) override;
  void on_kernel(StreamId stream, const KernelLaunch& launch, std::string_view symbol,
                 TimeSpan time) override;
  void on_copy(StreamId stream, MemoryPlace to, MemoryPlace from, Bytes bytes, TimeSpan time) override;
  void on_set(StreamId stream, int value, Bytes bytes, TimeSpan time) override;
  void on_event_recorded(StreamId stream, EventId event) override;
  void on_stream_waits(StreamId stream, EventId event, Nanoseconds host) override;
  void on_host_waits(WaitedFor what, const void* id, TimeSpan host, bool is_done) override;
  void on_memory(MemoryPlace place, const void* address, Bytes bytes, Nanoseconds host) override;

 private:
  using Lock = std::lock_guard<std::mutex>;
  using CallKey = std::pair<CallDomain, std::uint32_t>;

  bool is_enabled(CUpti_ActivityKind kind) const { return enabled_.test(kind); }
  bool is_recorded(const CallKey& call) const;
  std::uint32_t stream_number(StreamId stream);
  std::uint32_t event_number(EventId event);
  void record_external_ids();
  template <typename Record>
  void emit(const Record& record) {
    if (is_enabled(record.kind)) buffer_.append(&record, sizeof record);
  }

  std::mutex mutex_;
  std::bitset<CUPTI_ACTIVITY_KIND_COUNT> enabled_;
  std::map<CallKey, bool> call_choices_;  ///< choices for single calls, which override that of their kind
  bool all_sync_records_ = true;
  std::map<CallKey, const char*> call_names_;
  std::set<std::string, std::less<>> kernel_names_;  ///< records point to these names
  std::unordered_map<StreamId, std::uint32_t> streams_;
  std::unordered_map<EventId, std::uint32_t> events_;
  std::uint32_t last_correlation_ = 0;
  CuptiBuffer buffer_;
};

/// Returns the calling thread's stack of external ids of that kind. The ids name what its calls are for.
std::vector<std::uint64_t>& external_ids(CUpti_ExternalCorrelationKind kind);

}  // namespace offprof
