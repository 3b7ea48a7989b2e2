#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace offprof {

/// `--force`, of commands that predict times.
void add_force_option(CLI::App& app, bool& force);

/// A trace whose tracer lost some of what the GPU did may have times that are too short, and so would be all
/// that is predicted from them. Throws Error (input) for one; where `force`, returns a warning instead.
/// Nothing is lost: none.
std::vector<std::string> refuse_lost_records(const Trace& trace, const std::string& path, bool force);

}  // namespace offprof
