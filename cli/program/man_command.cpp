#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/help/man_page.h"
#include "cli/options/options.h"
#include "cli/program/command_table.h"
#include "cli/program/program_commands.h"
#include "cli/program/program_parser.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

/// Returns the page of the program, followed by those of its commands.
std::vector<ManPage> all_pages() {
  const ProgramParser parser;
  std::vector<ManPage> pages = {program_man_page(command_table())};
  for (const CommandEntry& entry : command_table())
    pages.push_back(command_man_page(entry, *parser.app().get_subcommand(std::string(entry.name))));
  return pages;
}

class ManCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    CLI::Option* const name =
        app.add_option("COMMAND", command_, "Command to describe (default: the program)");
    name->type_name("COMMAND");
    add_output_option(app, output_, "File for the page (default -: standard output)");
    app.add_option("--directory", folder_, "Write the pages of all commands into this folder, as NAME.1")
        ->type_name("DIR")
        ->excludes(name);
  }

  ExitStatus run(Context& context) override {
    if (!folder_.empty()) {
      write_all(context);
    } else {
      context.print(page().text, output_);
    }
    return ExitStatus::kOk;
  }

 private:
  ManPage page() const {
    const std::string wanted = command_.empty() ? "offprof" : "offprof-" + command_;
    std::vector<std::string> names;
    for (ManPage& page : all_pages()) {
      if (page.name == wanted) return std::move(page);
      names.push_back(page.name.substr(page.name.find('-') + 1));
    }
    throw input_error(fmt::format("there is no command '{}'", command_), did_you_mean(command_, names));
  }

  void write_all(Context& context) const {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error)
      throw input_error(fmt::format("cannot create the folder {}: {}", folder_, error.message()),
                        "Name a folder that you may write to.");
    for (const ManPage& page : all_pages())
      context.print(page.text, (std::filesystem::path(folder_) / (page.name + ".1")).string());
  }

  std::string command_, folder_, output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_man_command() {
  return std::make_unique<ManCommand>();
}

}  // namespace offprof
