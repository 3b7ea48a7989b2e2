#pragma once

#include <memory>
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

/// Creates `offprof gate`, which fails with exit status 1 if a figure is worse than a baseline allows.
std::unique_ptr<Subcommand> make_gate_command();

}  // namespace offprof
