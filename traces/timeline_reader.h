#pragma once

#include <optional>
#include <string>

#include "traces/file.h"
#include "traces/timeline.h"

namespace offprof {

/// The spans of a trace's `traceEvents`; arrows and counters are left out. nullopt where the file is none of
/// our traces: a report, or a baseline. Throws Error (input) as read_trace does for what is no JSON, and for
/// an event without a time, or with one that no trace can have, with its place.
std::optional<Timeline> read_timeline(const std::string& path);

/// The same of any source; `name` stands for it in errors.
std::optional<Timeline> parse_timeline(ByteSource& source, const std::string& name);

}  // namespace offprof
