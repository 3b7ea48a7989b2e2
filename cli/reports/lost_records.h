#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace offprof {

/// Adds `--force` to a command that predicts times.
void add_force_option(CLI::App& app, bool& force);

/// Rejects a trace whose tracer lost records of GPU activity: its times may be too short, and so may
/// predictions from them. Throws Error (input) for such a trace; with `force`, returns a warning instead.
/// Returns an empty list if no record was lost.
std::vector<std::string> refuse_lost_records(const Trace& trace, const std::string& path, bool force);

}  // namespace offprof
