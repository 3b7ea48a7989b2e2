#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof tune TRACE`, which replays a recorded step under many policies and chooses one.
std::unique_ptr<Subcommand> make_tune_command();

}  // namespace offprof
