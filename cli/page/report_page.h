#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/report/report_run.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// Content of a report page.
struct ReportPage {
  std::string heading;                   ///< name of the model
  std::string subtitle;                  ///< device, inputs, optimizer
  std::string footer;                    ///< version and command line
  std::vector<ReportRun> runs;           ///< at least one; the page opens with the last one
  std::optional<TuneResult> frontier{};  ///< policies for the first run
};

/// Returns the page: one HTML file that needs no other file and no network. Its Content-Security-Policy
/// allows only its own style and script.
std::string to_html(const ReportPage& page);

}  // namespace offprof
