#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal/terminal.h"
#include "traces/analysis/timeline_diff.h"

namespace offprof {

nlohmann::ordered_json to_json(const TimelineDiff& diff);

/// Returns tables of the differences in time, with `shown` rows of each list. A last row sums up the
/// remaining rows.
std::string to_text(const TimelineDiff& diff, std::size_t shown, const Page& page);

}  // namespace offprof
