#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/reports/rank_collectives.h"
#include "cli/reports/run_report.h"
#include "cli/reports/simulation_report.h"
#include "cli/terminal/terminal.h"
#include "simulator/advisor/step_floor.h"

namespace offprof {

/// Recording of one rank of many.
struct RankRun {
  int rank = 0;
  RunReport report;
  RankCollectives collectives{};  ///< of one step
  Explanation explanation{};      ///< of the figures of that step
  StepFloor floor{};              ///< memory that it holds, by kind
};

/// Result of `offprof run --world-size N`: ranks that were recorded one after the other, each alone.
struct RankRunsReport {
  int world_size = 1, nodes = 1;
  std::vector<RankRun> runs{};
};

nlohmann::ordered_json to_json(const RankRunsReport& report);

/// Returns tables of the ranks, after the report of the rank if there is only one. With Page::details, or if
/// there is something to look into, the reports of several ranks as well.
std::string to_text(const RankRunsReport& report, const Page& page);

}  // namespace offprof
