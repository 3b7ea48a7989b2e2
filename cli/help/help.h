#pragma once

#include <CLI/Formatter.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/base/command.h"

namespace offprof {

/// CLI11's help, with descriptions wrapped at the page's width.
class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t page_width);
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_description(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* app) const override;

 private:
  std::string make_entry(const std::string& name, const std::string& what) const;

  std::size_t page_width_;
};

/// Returns the output of `offprof --help`.
std::string program_help(const std::vector<CommandEntry>& commands, std::size_t page_width);

/// Returns the lines about exit codes at the end of every help, with their title.
std::string_view exit_codes_help();

/// Returns the end of a command's help: its examples and the exit codes.
std::string help_footer(const CommandEntry& entry);

}  // namespace offprof
