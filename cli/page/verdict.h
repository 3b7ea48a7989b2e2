#pragma once

#include <string>
#include <utility>
#include <vector>

#include "simulator/report/report_run.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// Figure of a verdict: its name, its value, and a remark that may be empty.
struct VerdictFigure {
  std::string name, value, remark;
};

/// Answer of a report to the question whether the step fits, and what its policy gains and costs.
struct Verdict {
  std::vector<std::string> sentences;  ///< most important first; plain text
  std::vector<VerdictFigure> figures;  ///< of the last run
};

/// Judges the last run: against nothing offloaded, and against the first run if there are several. `tuned` is
/// the search of the tuner for the first run, or nullptr.
Verdict judge(const std::vector<ReportRun>& runs, const TuneResult* tuned);

/// Returns the verdict as HTML.
std::string to_html(const Verdict& verdict);

}  // namespace offprof
