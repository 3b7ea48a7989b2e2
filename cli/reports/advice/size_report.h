#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/reports/advice/way_instructions.h"
#include "cli/terminal/terminal.h"
#include "simulator/advisor/size_advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// Result of `advise --goal batch` and `--goal sequence`, for both output formats.
struct SizeReport {
  SizeAdvice advice;
  const Trace& plain;              ///< trace of the program as it is; must outlive the report
  std::string noun;                ///< `batch`, `sequence length`
  bool is_batch = true;            ///< more samples, not longer ones
  WayInstructions instructions{};  ///< for the first way
  std::vector<std::string> notes{};
};

nlohmann::ordered_json to_json(const SizeReport& report);
std::string to_text(const SizeReport& report, const Page& page);

}  // namespace offprof
