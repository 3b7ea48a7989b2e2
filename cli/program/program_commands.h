#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof completion SHELL`, which prints a shell's completion script.
std::unique_ptr<Subcommand> make_completion_command();

/// Creates `offprof man`, which prints man pages.
std::unique_ptr<Subcommand> make_man_command();

}  // namespace offprof
