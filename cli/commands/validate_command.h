#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof validate`, which compares predictions with real runs.
std::unique_ptr<Subcommand> make_validate_command();

}  // namespace offprof
