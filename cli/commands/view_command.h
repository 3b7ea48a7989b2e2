#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof view TRACE`, which prints a readable summary of a trace.
std::unique_ptr<Subcommand> make_view_command();

}  // namespace offprof
