#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "profiler/cupti/library.h"
#include "profiler/recording/activity.h"

namespace offprof {

/// Builds GpuActivity from CUPTI's buffers, which come in any order.
class ActivityReader {
 public:
  explicit ActivityReader(const CuptiFunctions& cupti) : cupti_(cupti) {}

  /// Reads the records in the first `bytes` of `buffer`. If a record is broken, the rest counts as
  /// unreadable.
  void read(std::uint8_t* buffer, std::size_t bytes);
  /// Returns what was read since the last call, sorted.
  GpuActivity take();

 private:
  void add(const CUpti_Activity& record, std::size_t bytes_left);
  void add(const CUpti_ActivityKernel10& kernel);
  template <typename Copy>
  void add_copy(const Copy& copy);
  void add(const CUpti_ActivityMemset4& set);
  void add(const CUpti_ActivityAPI& call, CUpti_CallbackDomain domain);
  void add(const CUpti_ActivitySynchronization2& wait);
  void add(const CUpti_ActivityMemory4& memory);
  void add_work(const StreamWork& work);
  bool is_timed(std::uint64_t begin, std::uint64_t end);
  std::int32_t intern(std::string_view name);
  std::int32_t function_name(CUpti_CallbackDomain domain, std::uint32_t function);

  const CuptiFunctions& cupti_;
  GpuActivity activity_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::unordered_map<std::uint64_t, std::int32_t> functions_;  ///< by domain and number
};

}  // namespace offprof
