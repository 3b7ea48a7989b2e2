#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// Result of `advise`, for both output formats.
struct AdviceReport {
  Advice advice;
  const Trace& plain;              ///< trace of the step with nothing done; must outlive the report
  std::vector<std::string> run{};  ///< words of the `run` of the recommended way
  /// Words of the `advise` that writes the policy of that run; empty: it is written, or a preset.
  std::vector<std::string> policy_command{};
  bool is_of_traces = false;      ///< existing traces were compared, nothing was recorded
  bool expands_segments = false;  ///< that run needs expandable segments
  double peak_flops = 0;  ///< peak rate of the device for bfloat16, in operations per second; 0: not known
  std::vector<std::string> notes{};
};

nlohmann::ordered_json to_json(const AdviceReport& report);
std::string to_text(const AdviceReport& report, const Page& page);

}  // namespace offprof
