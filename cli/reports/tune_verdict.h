#pragma once

#include <string>

#include "cli/reports/tune_report.h"
#include "cli/terminal/terminal.h"

namespace offprof {

/// Returns the lines that the report of `tune` opens with: what the chosen policy does to memory and step
/// time, and the policy; or that no policy reaches the goal, and the least memory.
std::string verdict_text(const TuneReport& report, const Page& page);

}  // namespace offprof
