#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "traces/diff.h"
#include "traces/gate.h"

namespace offprof {

struct GateReport {
  std::string trace;
  std::string baseline;
  Verdict verdict;
  std::vector<OpDifference> ops;  ///< what the operators saved differently, largest first; for a failed gate
  bool times_are_modelled = false;  ///< those of the trace
};

nlohmann::ordered_json to_json(const GateReport& report);
std::string to_text(const GateReport& report, const Page& page);

/// `offprof gate`: fails, with exit status 1, where a figure got worse than a baseline allows.
std::unique_ptr<Subcommand> make_gate_command();

}  // namespace offprof
