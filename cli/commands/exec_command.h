#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Returns the command `exec`: runs any command, whose Python processes use the virtual GPU, without
/// recording.
std::unique_ptr<Subcommand> make_exec_command();

}  // namespace offprof
