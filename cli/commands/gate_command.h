#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/base/command.h"
#include "traces/analysis/diff.h"
#include "traces/analysis/gate.h"

namespace offprof {

struct GateReport {
  std::string trace;
  std::string baseline;
  GateResult verdict;
  /// Differences between the tensors that operators saved, largest first. Filled only if the gate failed.
  std::vector<OpDifference> ops;
  bool times_are_modelled = false;  ///< true if the trace's times are modelled
};

nlohmann::ordered_json to_json(const GateReport& report);
std::string to_text(const GateReport& report, const Page& page);

}  // namespace offprof
