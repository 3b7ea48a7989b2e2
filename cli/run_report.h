#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simulator/virtual_gpu/virtual_gpu.h"
#include "traces/figures.h"
#include "traces/gradient_error.h"
#include "traces/ledger.h"
#include "traces/metrics.h"

namespace offprof {

/// What `offprof run` found.
struct RunReport {
  Figures run;  ///< what was run and measured
  /// What `tune` predicted for the policy, where it came from there; else what a replay of this run's own
  /// step comes to.
  Metrics predicted;
  bool predicted_by_tune = false;
  /// Keys of exact figures (memory, copied bytes, the command log) in which the two differ: empty, unless
  /// offprof is wrong or a warning says that the setting's prediction need not be exact.
  std::vector<std::string> inexact;
  std::string gradients;  ///< as in Trace, and so the next
  std::vector<GradientError> gradient_errors;
  std::vector<std::string> notes;     ///< of the trace; in text they are warnings
  std::vector<std::string> warnings;  ///< about the prediction; in text they stand before the report
  Ledger ledger;
  bool checked_streams = false;
  std::vector<StreamHazard> hazards;
  std::string trace_path;         ///< empty: none written
  std::vector<std::string> argv;  ///< the command line, program name first
};

nlohmann::ordered_json to_json(const RunReport& report);
std::string to_text(const RunReport& report, const Page& page);

/// Keys of memory and copied bytes that differ, among those that a replay has.
std::vector<std::string> inexact_keys(const Metrics& measured, const Metrics& predicted);

}  // namespace offprof
