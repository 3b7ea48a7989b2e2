#include "cli/help/help.h"

#include <fmt/format.h>

#include "cli/terminal/terminal.h"

namespace offprof {
namespace {

constexpr std::size_t kNameColumn = 28;
constexpr std::size_t kCommandColumn = 14;

constexpr const char* kIntroduction =
    R"(offprof: measure and predict what activation offloading saves and costs

Usage: offprof COMMAND [OPTIONS]

Commands:
)";

constexpr const char* kExamples = R"(
Examples:
  offprof zoo make transformer -o model.pt       create an example model
  offprof run model.pt -o t.json                 train a few steps with offloading and record a trace
  offprof tune t.json -o policy.json             find the policy with the least memory
  offprof run model.pt --policy policy.json      run with that policy: predicted next to measured
  offprof gate t.json --baseline b.json          fail if memory or time got worse

`offprof COMMAND --help` describes a command. `offprof --version` prints the version, and with --verbose the
build.
)";

constexpr const char* kExitCodes = R"(Exit codes:
  0    success
  1    gate: a check failed; tune: no policy fits into the budget;
       advise: no way is within the limits;
       simulate --device-memory: the step does not fit;
       validate: a bound does not hold; run --check-streams: streams race
  2    invalid usage, or an invalid input or output file
  3    something is missing on this machine (memory, a library): see `offprof doctor`
  70   a bug in offprof
  130  interrupted
exec ends with the status of its command, or with 128 + the signal that ended it.
)";

}  // namespace

HelpFormatter::HelpFormatter(std::size_t page_width) : page_width_(page_width) {
  column_width(kNameColumn);
  label("OPTIONS", "options");
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "ACTION");
}

std::string HelpFormatter::make_entry(const std::string& name, const std::string& what) const {
  std::string text = "  " + name;
  const bool fits = text.size() + 2 <= kNameColumn;
  text += fits ? std::string(kNameColumn - text.size(), ' ') : "\n" + std::string(kNameColumn, ' ');
  return text + wrap(what, page_width_, kNameColumn) + "\n";
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  std::string text = Formatter::make_help(app, std::move(name), mode);
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  if (text.ends_with("\n\n")) text.pop_back();
  return text;
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrap(app->get_description(), page_width_, 0) + "\n\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return make_entry(make_option_name(option, is_positional) + make_option_opts(option),
                    make_option_desc(option));
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional() && !option->nonpositional()) return "";
  if (option->get_type_size() == 0) return "";
  const bool repeatable = option->get_expected_max() >= CLI::detail::expected_max_vector_size;
  return fmt::format(" {}{}", option->get_type_name(), repeatable ? " ..." : "");
}

std::string HelpFormatter::make_subcommand(const CLI::App* app) const {
  return make_entry(app->get_display_name(true), app->get_description());
}

std::string program_help(const std::vector<CommandEntry>& commands, std::size_t page_width) {
  std::string text = kIntroduction;
  for (const CommandEntry& entry : commands) {
    const std::string summary = wrap(entry.summary, page_width, kCommandColumn);
    text += fmt::format("  {:<{}}{}\n", entry.name, kCommandColumn - 2, summary);
  }
  return text + kExamples + "\n" + kExitCodes;
}

std::string_view exit_codes_help() {
  return kExitCodes;
}

std::string help_footer(const CommandEntry& entry) {
  return fmt::format("Examples:\n{}\n{}", entry.examples, kExitCodes);
}

}  // namespace offprof
