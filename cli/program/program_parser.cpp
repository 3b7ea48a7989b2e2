#include "cli/program/program_parser.h"

#include "cli/options/options.h"
#include "cli/program/command_table.h"

namespace offprof {
namespace {

void add_common_options_to_leaves(CLI::App& app, CommonOptions& options, const FormatChoices& formats) {
  const auto actions = app.get_subcommands([](const CLI::App*) { return true; });
  if (actions.empty()) add_common_options(app, options, formats);
  for (CLI::App* action : actions) add_common_options_to_leaves(*action, options, formats);
}

}  // namespace

void declare_command(const CommandEntry& entry, Subcommand& command, CommonOptions& options, CLI::App& app) {
  app.description(std::string(entry.summary));
  command.add_options(app);
  add_common_options_to_leaves(app, options, command.formats());
}

ProgramParser::ProgramParser() {
  for (const CommandEntry& entry : command_table()) {
    commands_.push_back(entry.make());
    declare_command(entry, *commands_.back(), options_, *app_.add_subcommand(std::string(entry.name)));
  }
  const std::string what = "Print the version, and with --verbose the build";
  app_.add_flag("-V,--version", what);
}

}  // namespace offprof
