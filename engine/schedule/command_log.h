#pragma once

#include <span>
#include <string>
#include <string_view>

#include "engine/schedule/scheduler.h"

namespace offprof {

/// `keep`, `let_go`, `copy_out`, `wait_out`, `drop`, `copy_in`, `wait_in`, `free_host`.
std::string_view to_string(CommandKind kind);

/// One JSON object a line, in program order and without times:
/// `{"command":"copy_out","tensor":12,"copy":3,"bytes":65536}`; `copy` is absent for `keep` and `let_go`.
std::string format_command_log(std::span<const Command> commands);

}  // namespace offprof
