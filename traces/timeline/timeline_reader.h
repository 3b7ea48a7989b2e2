#pragma once

#include <optional>
#include <string>

#include "traces/io/file.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Reads the spans of a trace's `traceEvents`, without arrows and counters. Returns nullopt if the file is
/// not one of our traces: a report, or a baseline. Throws Error (input) like read_trace if the text is not
/// JSON. Also throws, with the place, if an event has no time or an impossible time.
std::optional<Timeline> read_timeline(const std::string& path);

/// Reads the same from any source; `name` is its name in errors.
std::optional<Timeline> parse_timeline(ByteSource& source, const std::string& name);

}  // namespace offprof
