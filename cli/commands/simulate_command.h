#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof simulate TRACE`, which replays a recorded step under another policy or over
/// another link.
std::unique_ptr<Subcommand> make_simulate_command();

}  // namespace offprof
