#pragma once

#include <vector>

#include "cli/base/command.h"

namespace offprof {

/// Every command, in the order of `offprof --help`.
const std::vector<CommandEntry>& command_table();

}  // namespace offprof
