#include "engine/scheduler/command_log.h"

#include <array>

namespace offprof {

std::string_view to_string(CommandKind kind) {
  static constexpr std::array<std::string_view, 18> kNames = {
      "keep",       "release_kept", "copy_out",  "wait_out",           "drop",      "copy_in",   "wait_in",
      "free_host",  "encode",       "decode",    "drop_for_recompute", "recompute", "take_disk", "write_disk",
      "wait_write", "read_disk",    "wait_read", "free_disk"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string format_command_log(std::span<const Command> commands) {
  std::string log;
  for (const Command& command : commands) {
    log += R"({"command":")";
    log += to_string(command.kind);
    log += R"(","tensor":)" + std::to_string(command.tensor);
    if (command.copy >= 0) log += R"(,"copy":)" + std::to_string(command.copy);
    log += R"(,"bytes":)" + std::to_string(command.bytes) + "}\n";
  }
  return log;
}

}  // namespace offprof
