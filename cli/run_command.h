#pragma once

#include <memory>

#include "cli/command.h"

namespace offprof {

/// `offprof run MODEL.pt`: trains some steps for real under a policy, and traces them.
std::unique_ptr<Subcommand> make_run_command();

}  // namespace offprof
