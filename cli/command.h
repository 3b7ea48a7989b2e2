#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>  // App needs it where it is constructed
#include <CLI/Formatter.hpp>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/context.h"
#include "cli/exit_status.h"

namespace offprof {

/// One command of the program. A new one is a file with a class and a `make_..._command`, and a line in
/// command_table.cpp.
class Subcommand {
 public:
  virtual ~Subcommand() = default;
  /// Declares the command's own flags; the common ones are added to it, or to each of its sub-commands if it
  /// has any.
  virtual void add_options(CLI::App& app) = 0;
  /// Does the work once the flags are read. Throws Error for what a user can mend.
  virtual ExitStatus run(Context& context) = 0;
};

struct CommandEntry {
  std::string_view name;
  std::string_view summary;   ///< one line, in the list of commands and on top of its own help
  std::string_view examples;  ///< lines of its help
  std::unique_ptr<Subcommand> (*make)();
};

/// Every command, in the order of `offprof --help`.
const std::vector<CommandEntry>& command_table();

}  // namespace offprof
