#pragma once

#include <memory>

#include "cli/command.h"

namespace offprof {

/// `offprof view TRACE`: a readable summary of a trace.
std::unique_ptr<Subcommand> make_view_command();

}  // namespace offprof
