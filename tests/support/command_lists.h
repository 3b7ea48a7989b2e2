#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/scheduler/command.h"

namespace offprof {

/// Returns the names of the commands, such as `keep`. For tests.
inline std::vector<std::string_view> names_of(const std::vector<Command>& commands) {
  std::vector<std::string_view> names(commands.size());
  std::ranges::transform(commands, names.begin(), name_of);
  return names;
}

/// Returns the bytes of a command. For tests.
inline Bytes bytes_of(const Command& command) {
  return std::visit([](const auto& each) { return each.bytes; }, command);
}

/// Returns the number of commands of one kind. For tests.
template <typename EachCommand>
std::ptrdiff_t count_of(const std::vector<Command>& commands) {
  return std::ranges::count_if(
      commands, [](const Command& command) { return std::holds_alternative<EachCommand>(command); });
}

}  // namespace offprof
