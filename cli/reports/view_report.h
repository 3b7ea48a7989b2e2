#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/reports/simulation_report.h"
#include "cli/tables/memory_chart.h"
#include "cli/terminal/terminal.h"
#include "traces/analysis/figures.h"
#include "traces/model/trace.h"

namespace offprof {

/// Output of `offprof view`.
struct ViewReport {
  std::string source;
  std::string tool_version;  ///< version of the tool that wrote the trace
  StepSummary figures;
  std::string gradients{};
  std::vector<std::string> notes{};
  Ledger ledger{};
  std::vector<std::pair<std::string, LedgerEntry>> saved_by_op{};  ///< most bytes first
  std::size_t ops_shown = 10;                                      ///< rows shown in text; JSON has all
  MemoryOverStep memory{};
  Explanation explanation{};
  std::optional<AllocatorState> allocator{};  ///< state when the steps begin
  bool has_timeline = true;                   ///< the file shows a step in a viewer
};

/// Returns the link with a bandwidth in each direction. A trace without a calibrated link is replayed over a
/// link so fast that copies take no visible time.
Link usable_link(Link link);

ViewReport make_view_report(const Trace& trace, const std::string& source, std::size_t ops_shown);
nlohmann::ordered_json to_json(const ViewReport& report);
std::string to_text(const ViewReport& report, const Page& page);

}  // namespace offprof
