#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/base/command.h"
#include "traces/analysis/diff.h"
#include "traces/analysis/timeline_diff.h"

namespace offprof {

struct DiffReport {
  Diff diff;
  std::size_t ops_shown = 10;  ///< rows of each list in the text report; JSON has all rows
  bool lists_times = false;    ///< lists operators, stalls, copies and places, like a page with details
  std::optional<TimelineDiff> timeline{};    ///< nullopt: a file contains no step
  std::vector<std::string> without_steps{};  ///< the files that contain no step
};

/// Adds the comparison of both timelines to the report. A file without a timeline is passed as nullopt.
void compare_timelines(DiffReport& report, const std::optional<Timeline>& base,
                       const std::optional<Timeline>& now);

nlohmann::ordered_json to_json(const DiffReport& report);
std::string to_text(const DiffReport& report, const Page& page);

}  // namespace offprof
