#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "profiler/cupti/library.h"
#include "simulator/virtual_gpu/runtime/cupti_buffer.h"

namespace offprof {

/// Stands in for CUPTI in tests: gives the records that a test emits to whoever subscribed, in buffers asked
/// for as CUPTI asks for them. One at a time.
class FakeCupti {
 public:
  FakeCupti() { active_ = this; }
  ~FakeCupti() { active_ = nullptr; }
  FakeCupti(const FakeCupti&) = delete;
  FakeCupti& operator=(const FakeCupti&) = delete;

  static CuptiFunctions functions();

  // --- What it does ---

  /// What a function returns instead of success, by its name without `cupti`.
  std::map<std::string, CUptiResult> results;
  std::string holder;  ///< who else subscribed

  /// Puts a record into the buffer at hand where its kind is enabled; asks for another where that is full.
  template <typename Record>
  void emit(Record record) {
    if (enabled.contains(record.kind)) buffer_.append(&record, sizeof record);
  }
  /// Ends the buffer at hand in the middle of a record: of what was put into it the last `bytes` are not
  /// valid.
  void cut(std::size_t bytes) { buffer_.cut(bytes); }
  /// What is emitted from here on goes to another buffer; this one comes back later than that.
  void set_aside();

  // --- What was done with it ---

  bool is_subscribed = false;
  std::vector<std::string> calls;  ///< names, without those of each record
  std::set<CUpti_ActivityKind> enabled;
  std::set<std::uint32_t> quiet_runtime_calls, driver_calls;
  std::set<CUpti_ActivityAttribute> attributes;
  std::vector<std::uint64_t> external_ids;  ///< the stack

 private:
  static FakeCupti& get() { return *active_; }
  CUptiResult called(const char* name);
  void flush();

  static inline FakeCupti* active_ = nullptr;  // NOLINT(readability-identifier-naming)

  CuptiBuffer buffer_;
  std::vector<CuptiBuffer> aside_;
};

}  // namespace offprof
