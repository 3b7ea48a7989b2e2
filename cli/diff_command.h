#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "traces/diff.h"
#include "traces/timeline_diff.h"

namespace offprof {

struct DiffReport {
  Diff diff;
  std::size_t ops_shown = 10;                ///< rows of each list in text; JSON has them all
  std::optional<TimelineDiff> timeline{};    ///< nullopt: a side shows no step
  std::vector<std::string> without_steps{};  ///< the files that show none
};

/// Adds what the timelines of both sides show, nullopt being that of a file that has none.
void compare_timelines(DiffReport& report, const std::optional<Timeline>& base,
                       const std::optional<Timeline>& now);

nlohmann::ordered_json to_json(const DiffReport& report);
std::string to_text(const DiffReport& report, const Page& page);

/// `offprof diff BASE NEW`: what changed from one run to another. It judges nothing: see `offprof gate`.
std::unique_ptr<Subcommand> make_diff_command();

}  // namespace offprof
