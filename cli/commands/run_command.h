#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof run MODEL.pt`, which trains some real steps under a policy and traces them.
std::unique_ptr<Subcommand> make_run_command();

}  // namespace offprof
