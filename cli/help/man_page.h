#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cli/base/command.h"

namespace offprof {

/// A man page of section 1.
struct ManPage {
  std::string name;  ///< such as `offprof-run`, without the section
  std::string text;  ///< roff with the macros of man(7)
};

/// Returns the page of the program, which lists its commands.
ManPage program_man_page(const std::vector<CommandEntry>& commands);

/// Returns the page of a command, whose options `app` has.
ManPage command_man_page(const CommandEntry& command, const CLI::App& app);

}  // namespace offprof
