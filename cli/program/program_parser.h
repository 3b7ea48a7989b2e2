#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <vector>

#include "cli/base/command.h"
#include "cli/base/context.h"

namespace offprof {

/// Declares the options of a command, its description, and the common options of each of its actions.
/// `command` and `options` must outlive the parse.
void declare_command(const CommandEntry& entry, Subcommand& command, CommonOptions& options, CLI::App& app);

/// The parser of the whole command line, for those who read what can be written on it: completion and man
/// pages. It parses nothing.
class ProgramParser {
 public:
  ProgramParser();
  /// Has a sub-command for each command, in the order of the table.
  const CLI::App& app() const { return app_; }

 private:
  CLI::App app_;
  CommonOptions options_;
  std::vector<std::unique_ptr<Subcommand>> commands_;
};

}  // namespace offprof
