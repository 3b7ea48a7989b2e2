#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/reports/advice/advice_report.h"
#include "cli/terminal/terminal.h"
#include "simulator/advisor/world_advice.h"

namespace offprof {

/// Result of `advise --world-size`, for both output formats.
struct WorldReport {
  const WorldAdvice& advice;  ///< must outlive the report
  AdviceReport best;          ///< of its best attempt
};

nlohmann::ordered_json to_json(const WorldReport& report);
std::string to_text(const WorldReport& report, const Page& page);

}  // namespace offprof
