#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/simulation_report.h"
#include "cli/terminal.h"
#include "cli/tuned_way.h"
#include "simulator/tune.h"
#include "simulator/views.h"

namespace offprof {

/// What `tune` found, for both forms of its report.
struct TuneReport {
  std::string trace;
  TuneGoal goal;
  TuneResult result;
  std::optional<Explanation> why;  ///< of the chosen policy
  ProgramPlace least_place;        ///< where the program itself holds most
  std::string profile;             ///< of --profile; empty: none is given
  std::vector<std::string> next;   ///< the words of the command to go on with, where a policy was chosen
  bool times_are_modelled = false;
  RunSettings settings{};  ///< with which the step was recorded
  /// All that were tuned together, this one's among them.
  std::vector<TunedWay> ways{};
  /// Why the predicted times deserve less trust than their digits suggest; a sentence each.
  std::vector<std::string> warnings;
};

nlohmann::ordered_json to_json(const TuneReport& report);
std::string to_text(const TuneReport& report, const Page& page);

}  // namespace offprof
