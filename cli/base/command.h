#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>  // needed for the construction of an App
#include <CLI/Formatter.hpp>
#include <memory>
#include <string_view>

#include "cli/base/context.h"
#include "cli/base/exit_status.h"

namespace offprof {

/// One command of offprof. To add a command, write a file with a class and a `make_..._command` function,
/// declare the function in commands.h, and add a line to command_table.cpp.
class Subcommand {
 public:
  virtual ~Subcommand() = default;
  /// Declares the command's own flags. The common flags are then added to the command, or to each of its
  /// sub-commands if it has any.
  virtual void add_options(CLI::App& app) = 0;
  /// Returns the choices of `--format`.
  virtual FormatChoices formats() const { return common_formats(); }
  /// Runs the command after its flags are parsed. Throws Error for a problem that the user can fix.
  virtual ExitStatus run(Context& context) = 0;
};

struct CommandEntry {
  std::string_view name;
  std::string_view summary;   ///< one line, shown in the list of commands and in the command's help
  std::string_view examples;  ///< example lines for the command's help
  std::unique_ptr<Subcommand> (*make)();
};

}  // namespace offprof
