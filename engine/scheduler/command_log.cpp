#include "engine/scheduler/command_log.h"

namespace offprof {

std::string format_command_log(std::span<const Command> commands) {
  std::string log;
  const auto add = [&](const auto& command) {
    log += R"({"command":")";
    log += command.kName;
    log += R"(","tensor":)" + std::to_string(command.tensor);
    if constexpr (requires { command.copy; }) log += R"(,"copy":)" + std::to_string(command.copy);
    log += R"(,"bytes":)" + std::to_string(command.bytes) + "}\n";
  };
  for (const Command& command : commands) std::visit(add, command);
  return log;
}

}  // namespace offprof
