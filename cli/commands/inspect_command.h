#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof inspect FILE`, which lists the tensors of a file, or describes its other content.
std::unique_ptr<Subcommand> make_inspect_command();

}  // namespace offprof
