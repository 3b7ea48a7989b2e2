#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/runtime/cupti_buffer.h"
#include "profiler/cupti/library.h"

namespace offprof {

/// Replaces CUPTI in tests. It passes the records that a test emits to the subscriber, in buffers requested
/// the way CUPTI requests them. One at a time.
class FakeCupti {
 public:
  FakeCupti() { active_ = this; }
  ~FakeCupti() { active_ = nullptr; }
  FakeCupti(const FakeCupti&) = delete;
  FakeCupti& operator=(const FakeCupti&) = delete;

  static CuptiFunctions functions();

  // --- Behaviour ---

  /// Results that functions return instead of success, by the function's name without `cupti`.
  std::map<std::string, CUptiResult> results;
  std::string holder;  ///< the other subscriber

  /// Puts a record into the current buffer if its kind is enabled. Requests another buffer if that one is
  /// full.
  template <typename Record>
  void emit(Record record) {
    if (enabled.contains(record.kind)) buffer_.append(&record, sizeof record);
  }
  /// Ends the current buffer in the middle of a record: its last `bytes` are not valid.
  void cut(std::size_t bytes) { buffer_.cut(bytes); }
  /// Sets the current buffer aside, so that later records go to another buffer, which is returned first.
  void set_aside();

  // --- Recorded calls ---

  bool is_subscribed = false;
  std::vector<std::string> calls;  ///< names, without the calls for each record
  std::set<CUpti_ActivityKind> enabled;
  std::set<std::uint32_t> quiet_runtime_calls, driver_calls;
  std::set<CUpti_ActivityAttribute> attributes;
  std::vector<std::uint64_t> external_ids;  ///< the stack

 private:
  static void set_session_functions(CuptiFunctions& cupti);
  static void set_record_functions(CuptiFunctions& cupti);

  static FakeCupti& get() { return *active_; }
  CUptiResult called(const char* name);
  void flush();

  static inline FakeCupti* active_ = nullptr;  // NOLINT(readability-identifier-naming)

  CuptiBuffer buffer_;
  std::vector<CuptiBuffer> aside_;
};

}  // namespace offprof
