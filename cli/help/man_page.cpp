#include "cli/help/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>

#include "cli/base/version.h"
#include "cli/help/help.h"

namespace offprof {
namespace {

constexpr std::string_view kProgramSummary = "Measure and predict what activation offloading saves and costs";

/// Escapes text for roff, so that it is shown as it is.
std::string escaped(std::string_view text) {
  std::string roff;
  for (const char c : text) {
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  const bool is_request = !roff.empty() && (roff.front() == '.' || roff.front() == '\'');
  return is_request ? "\\&" + roff : roff;
}

/// Returns prose in roff. Text in backquotes is bold.
std::string prose(std::string_view text) {
  std::string roff;
  bool is_code = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('`', begin), text.size());
    roff += escaped(text.substr(begin, end - begin));
    if (end < text.size()) {
      roff += is_code ? "\\fR" : "\\fB";
      is_code = !is_code;
    }
    begin = end + 1;
  }
  return roff;
}

/// Returns lines that are shown as they are.
std::string verbatim(std::string_view text) {
  std::string roff = ".nf\n";
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) roff += escaped(line) + "\n";
  return roff + ".fi\n";
}

std::string section(std::string title) {
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".SH {}\n", title);
}

std::string entry(const std::string& head, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", head, prose(text));
}

/// Returns `\fB-o\fR, \fB--output\fR \fIFILE\fR`.
std::string option_head(const CLI::Option& option) {
  std::string head;
  const auto add = [&](const std::string& name) {
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", escaped(name));
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (option.get_items_expected_max() > 0)
    head += fmt::format(" \\fI{}\\fR", escaped(option.get_type_name()));
  return head;
}

bool is_argument(const CLI::Option& option) {
  return option.get_positional() && !option.nonpositional();
}

/// Returns the actions of a command that has some, or else the command itself.
std::vector<const CLI::App*> leaves_of(const CLI::App& app) {
  const auto actions = app.get_subcommands([](const CLI::App*) { return true; });
  return actions.empty() ? std::vector{&app} : actions;
}

std::string synopsis(const std::string& name, const CLI::App& app) {
  std::string roff;
  for (const CLI::App* action : leaves_of(app)) {
    const std::string command = action == &app ? name : name + " " + action->get_name();
    roff += fmt::format("{}\\fB{}\\fR [\\fIoptions\\fR]", roff.empty() ? "" : ".br\n", escaped(command));
    for (const CLI::Option* option : action->get_options()) {
      if (!is_argument(*option)) continue;
      const std::string argument = fmt::format("\\fI{}\\fR", escaped(option->get_name(true)));
      const bool repeats = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
      const std::string words = argument + (repeats ? "..." : "");
      roff += option->get_required() ? " " + words : " [" + words + "]";
    }
    roff += "\n";
  }
  return section("Synopsis") + roff;
}

std::string arguments_of(const CLI::App& app) {
  std::string roff;
  for (const CLI::Option* option : app.get_options())
    if (is_argument(*option))
      roff += entry(fmt::format("\\fI{}\\fR", escaped(option->get_name(true))), option->get_description());
  return roff;
}

std::string options_of(const CLI::App& app) {
  std::string roff;
  for (const std::string& group : app.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : app.get_options())
      if (option->get_group() == group && !is_argument(*option))
        entries += entry(option_head(*option), option->get_description());
    if (!group.empty() && !entries.empty()) roff += section(group) + entries;
  }
  return roff;
}

/// Returns the arguments and options of a command, or of each of its actions.
std::string parameters(const CLI::App& app) {
  std::string roff;
  for (const CLI::App* action : leaves_of(app)) {
    const std::string arguments = arguments_of(*action);
    if (action != &app)
      roff += section("Action " + action->get_name()) + prose(action->get_description()) + "\n" + arguments;
    if (action == &app && !arguments.empty()) roff += section("Arguments") + arguments;
    roff += options_of(*action);
  }
  return roff;
}

std::string header(const std::string& name, std::string_view summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"offprof {}\" \"offprof manual\"\n{}{} \\- {}\n", escaped(title),
                     program_version(), section("Name"), escaped(name), prose(summary));
}

/// Returns the section about exit codes. Its title replaces the first line of the help.
std::string exit_status() {
  const std::string_view help = exit_codes_help();
  return section("Exit status") + verbatim(help.substr(help.find('\n') + 1));
}

}  // namespace

ManPage program_man_page(const std::vector<CommandEntry>& commands) {
  const std::string name = "offprof";
  std::string roff = header(name, kProgramSummary) + section("Synopsis") +
                     "\\fBoffprof\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n" + section("Commands");
  for (const CommandEntry& command : commands)
    roff +=
        entry(fmt::format("\\fBoffprof\\-{}\\fR(1)", escaped(command.name)), std::string(command.summary));
  return {name, roff + exit_status()};
}

ManPage command_man_page(const CommandEntry& command, const CLI::App& app) {
  const std::string name = fmt::format("offprof-{}", command.name);
  return {name, header(name, command.summary) + synopsis(fmt::format("offprof {}", command.name), app) +
                    parameters(app) + section("Examples") + verbatim(command.examples) + exit_status() +
                    section("See also") + "\\fBoffprof\\fR(1)\n"};
}

}  // namespace offprof
