#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal.h"
#include "traces/timeline_diff.h"

namespace offprof {

nlohmann::ordered_json to_json(const TimelineDiff& diff);

/// Tables of what parts in time, `shown` rows of each list; a last row has the rest of it.
std::string to_text(const TimelineDiff& diff, std::size_t shown, const Page& page);

}  // namespace offprof
