#pragma once

#include <span>
#include <string>

#include "engine/scheduler/command.h"

namespace offprof {

/// Formats the commands as one JSON object per line, in program order and without times:
/// `{"command":"copy_out","tensor":12,"copy":3,"bytes":65536}`. `copy` is absent for `keep` and
/// `release_kept`.
std::string format_command_log(std::span<const Command> commands);

}  // namespace offprof
