#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Returns the name of a command in the log, such as `keep`, `copy_out` or `wait_in`.
std::string_view to_string(CommandKind kind);

/// Formats the commands as one JSON object per line, in program order and without times:
/// `{"command":"copy_out","tensor":12,"copy":3,"bytes":65536}`. `copy` is absent for `keep` and
/// `release_kept`.
std::string format_command_log(std::span<const Command> commands);

}  // namespace offprof
