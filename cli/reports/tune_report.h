#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/reports/next_command.h"
#include "cli/reports/simulation_report.h"
#include "cli/reports/tuned_configuration.h"
#include "cli/terminal/terminal.h"
#include "simulator/steps/views.h"
#include "simulator/tuner/tune.h"
#include "traces/base/time_range.h"

namespace offprof {

/// Result of `tune`, for both output formats.
struct TuneReport {
  std::string trace;
  TuneGoal goal;
  TuneResult result;
  std::optional<Explanation> why;  ///< explanation of the chosen policy
  /// The place at which the lower bound of the peak (TuneResult::device_peak_bound_bytes) is reached.
  ProgramPlace least_place;
  bool budget_is_the_devices =
      false;                      ///< the budget is the trace's device, since the step does not fit into it
  std::string profile;            ///< argument of --profile; empty: the flag is absent
  std::vector<std::string> next;  ///< words of the next command, if a policy was chosen
  Variables next_variables{};     ///< its environment variables
  bool knows_recomputations = true;  ///< the trace says which tensors can be recomputed
  bool times_are_modelled = false;
  std::optional<TimeRange> step_range{};  ///< of the chosen policy's modelled step time
  /// Rows of the frontier, among rows_to_show, that take as long as the chosen policy as far as the model can
  /// tell.
  std::vector<std::size_t> alike{};
  RunSettings settings{};  ///< the settings with which the step was recorded
  StepSize step_size{};
  /// All configurations that were tuned together, including this one.
  std::vector<TunedConfiguration> configurations{};
  /// Reasons why the predicted times are less certain than their digits suggest, one sentence each.
  std::vector<std::string> warnings;
};

/// Returns the rows of the Pareto frontier that the text has: the chosen one, the ends, and others spread
/// evenly between.
std::vector<std::size_t> rows_to_show(const TuneResult& result);

nlohmann::ordered_json to_json(const TuneReport& report);
std::string to_text(const TuneReport& report, const Page& page);

}  // namespace offprof
