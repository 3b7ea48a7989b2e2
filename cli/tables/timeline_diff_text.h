#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal/terminal.h"
#include "traces/analysis/timeline_diff.h"

namespace offprof {

nlohmann::ordered_json to_json(const TimelineDiff& diff);

/// Returns a table of the differences in time of the phases; with details also lists of operators, stalls,
/// copies and places, of `shown` rows each. A last row sums up the remaining rows.
std::string to_text(const TimelineDiff& diff, std::size_t shown, const Page& page);

}  // namespace offprof
