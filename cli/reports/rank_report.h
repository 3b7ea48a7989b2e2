#pragma once

#include <string>

#include "cli/reports/exec_report.h"
#include "cli/terminal/terminal.h"

namespace offprof {

/// Returns the table of ranks, the table of their collectives and the estimate of NCCL's memory; empty if no
/// process is a rank with figures.
std::string rank_text(const ExecReport& report, const Page& page);

}  // namespace offprof
