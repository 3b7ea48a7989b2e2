#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "profiler/recording/activity.h"
#include "profiler/recording/recorded_pass.h"

namespace offprof {

/// Causes of a traced step's calls, by correlation.
class WorkCauses {
 public:
  explicit WorkCauses(const GpuActivity& activity) {
    for (const CausedBy& cause : activity.causes) causes_[cause.correlation] = cause.id;
  }

  /// Returns the index of the operator's beginning in RecordedPass::events; nullopt: the call was not made
  /// for an operator.
  std::optional<std::size_t> op_of(std::uint32_t correlation) const { return index_of(correlation, false); }
  /// Returns the index in RecordedPass::commands; nullopt: the call was not made for a command.
  std::optional<std::size_t> command_of(std::uint32_t correlation) const {
    return index_of(correlation, true);
  }

 private:
  std::optional<std::size_t> index_of(std::uint32_t correlation, bool is_command) const {
    const auto found = causes_.find(correlation);
    if (found == causes_.end() || WorkCause::is_command(found->second) != is_command) return std::nullopt;
    return WorkCause::index(found->second);
  }

  std::unordered_map<std::uint32_t, std::uint64_t> causes_;
};

}  // namespace offprof
