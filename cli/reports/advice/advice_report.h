#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/reports/advice/way_instructions.h"
#include "cli/terminal/terminal.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// Result of `advise`, for both output formats.
struct AdviceReport {
  Advice advice;
  const Trace& plain;              ///< trace of the step with nothing done; must outlive the report
  WayInstructions instructions{};  ///< for the recommended way
  bool is_of_traces = false;       ///< existing traces were compared, nothing was recorded
  double peak_flops = 0;  ///< peak rate of the device for bfloat16, in operations per second; 0: not known
  std::vector<std::string> notes{};
};

/// Returns a line that says what a run of the way measured; empty if it was not run.
std::string confirmation_text(const Way& way, const Page& page);
/// Returns `1 recording`, `9 recordings`.
std::string count_text(std::size_t count, const std::string& noun);
nlohmann::ordered_json way_to_json(const Way& way);
nlohmann::ordered_json unrecorded_to_json(const std::vector<UnrecordedConfiguration>& unrecorded);
/// Adds what was recorded and tried, the commands to run next, and the notes of an AdviceReport or
/// SizeReport.
template <class Report>
void add_search(nlohmann::ordered_json& json, const Report& report) {
  json["unrecorded"] = unrecorded_to_json(report.advice.unrecorded);
  json["recordings"] = report.advice.recordings;
  json["policies_tried"] = report.advice.replayed;
  json["run"] = report.instructions.run;
  if (const auto& words = report.instructions.policy_command; !words.empty()) json["policy_command"] = words;
  json["notes"] = report.notes;
}

nlohmann::ordered_json to_json(const AdviceReport& report);
std::string to_text(const AdviceReport& report, const Page& page);

}  // namespace offprof
