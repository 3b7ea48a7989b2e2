#pragma once

#include <memory>

#include "cli/command.h"

namespace offprof {

/// `offprof validate`: predictions held against real runs.
std::unique_ptr<Subcommand> make_validate_command();

}  // namespace offprof
