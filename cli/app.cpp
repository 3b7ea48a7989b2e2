#include "cli/app.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "cli/base/build_facts.h"
#include "cli/base/version.h"
#include "cli/help/completion.h"
#include "cli/help/help.h"
#include "cli/options/usage_error.h"
#include "cli/program/command_table.h"
#include "cli/program/program_parser.h"
#include "cli/terminal/printable_stream.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

struct Invocation {
  std::vector<std::string> argv;  ///< program name first
  const Terminal& terminal;
  std::ostream& out;
  std::ostream& err;
};

bool is_flag(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

bool is_help(const std::string& word) {
  return word == "-h" || word == "--help" || word == "help";
}

bool is_version(const std::string& word) {
  return word == "-V" || word == "--version" || word == "version";
}

const CommandEntry& find_command(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandEntry& entry : command_table()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  if (is_flag(name)) {
    throw input_error(fmt::format("option '{}' is before the command", name),
                      "Write the command first: offprof COMMAND [OPTIONS].");
  }
  const std::string suggestion = did_you_mean(name, names);
  throw input_error(fmt::format("there is no command '{}'", name),
                    suggestion.empty() ? "`offprof --help` lists the commands." : suggestion);
}

/// Doubles `--` after the values of an option that takes several: CLI11 takes one mark as the end of such
/// values, and would read the words after it as options.
void keep_mark_after_values(const CLI::App& app, std::vector<std::string>& words) {
  const auto mark = std::ranges::find(words, "--");
  if (mark == words.end()) return;
  const auto is_option = [](const std::string& word) { return word.starts_with("-"); };
  const auto last = std::find_if(std::reverse_iterator(mark), words.rend(), is_option);
  if (last == words.rend()) return;
  const CLI::Option* const option = app.get_option_no_throw(last->substr(0, last->find('=')));
  const bool takes_several =
      option != nullptr && (option->get_allow_extra_args() || option->get_items_expected_max() > 1);
  if (takes_several) words.insert(mark, "--");
}

ExitStatus run_command(const CommandEntry& entry, const Invocation& invocation) {
  Context context(std::string(entry.name), invocation.argv, invocation.terminal, invocation.out,
                  invocation.err);
  CLI::App app("", fmt::format("offprof {}", entry.name));
  app.formatter(std::make_shared<HelpFormatter>(invocation.terminal.width));
  app.footer(help_footer(entry));
  const std::unique_ptr<Subcommand> command = entry.make();
  declare_command(entry, *command, context.options(), app);
  std::vector<std::string> words(invocation.argv.begin() + 2, invocation.argv.end());
  keep_mark_after_values(app, words);
  std::ranges::reverse(words);  // CLI11 expects the words in reverse order
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    invocation.out << app.help();
    return ExitStatus::kOk;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  return command->run(context);
}

/// Prints the version, and with `--verbose` the facts of the build.
void print_version(const Invocation& invocation) {
  invocation.out << "offprof " << program_version() << '\n';
  const auto is_verbose = [](const std::string& word) { return word == "-v" || word == "--verbose"; };
  if (std::ranges::none_of(invocation.argv, is_verbose)) return;
  for (const BuildFact& fact : build_facts())
    invocation.out << fmt::format("  {:<10}{}\n", fact.name, wrap(fact.value, invocation.terminal.width, 12));
}

ExitStatus dispatch(Invocation& invocation) {
  std::vector<std::string>& argv = invocation.argv;
  if (argv.size() < 2) {
    invocation.err << program_help(command_table(), invocation.terminal.width);
    return ExitStatus::kBadInput;
  }
  if (argv[1] == "help" && argv.size() > 2) argv = {argv[0], argv[2], "--help"};
  if (is_help(argv[1])) {
    invocation.out << program_help(command_table(), invocation.terminal.width);
    return ExitStatus::kOk;
  }
  if (is_version(argv[1])) {
    print_version(invocation);
    return ExitStatus::kOk;
  }
  if (argv[1] == kCompleteWord) {
    const std::vector<std::string> words(argv.begin() + 2, argv.end());
    if (!words.empty()) invocation.out << to_lines(complete(ProgramParser().app(), words));
    return ExitStatus::kOk;
  }
  return run_command(find_command(argv[1]), invocation);
}

/// Returns the colour setting of the command line. Works before parsing and for invalid command lines, so
/// that errors about the command line have the right colours.
ColorWhen color_of(const std::vector<std::string>& argv) {
  ColorWhen when = ColorWhen::kAuto;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const bool is_next = argv[i] == "--color" && i + 1 < argv.size();
    const std::string value = is_next                           ? argv[i + 1]
                              : argv[i].starts_with("--color=") ? argv[i].substr(8)
                                                                : "";
    if (value == "always") when = ColorWhen::kAlways;
    if (value == "never") when = ColorWhen::kNever;
  }
  return when;
}

/// Prints `error: ...`, followed by `hint: ...`.
void print_error(const Invocation& invocation, const std::string& message, const std::string& hint) {
  const Terminal& terminal = invocation.terminal;
  const Page page{terminal.width, wants_color(color_of(invocation.argv), terminal.err_is_terminal, terminal)};
  invocation.err << page.paint(Tone::kBad, "error:") << ' ' << wrap(message, page.width, 7) << '\n';
  if (!hint.empty())
    invocation.err << page.paint(Tone::kStrong, "hint:") << ' ' << wrap(hint, page.width, 6) << '\n';
}

ExitStatus run_and_translate_errors(Invocation& invocation) {
  try {
    const ExitStatus status = dispatch(invocation);
    invocation.out.flush();
    if (!invocation.out)
      throw input_error("cannot write to standard output", "Check that the disk has free space.");
    return status;
  } catch (const Error& error) {
    print_error(invocation, error.what(), error.hint());
    return error.kind() == ErrorKind::kEnvironment ? ExitStatus::kEnvironment : ExitStatus::kBadInput;
  } catch (const std::bad_alloc&) {
    print_error(invocation, "out of memory", "");
    return ExitStatus::kEnvironment;
  } catch (const std::exception& error) {
    print_error(invocation, fmt::format("internal error in offprof {}: {}", program_version(), error.what()),
                std::string(bug_report_request()));
    return ExitStatus::kInternal;
  }
}

}  // namespace

int run_cli(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
            const Terminal& terminal) {
  PrintableStream shown_out(out), shown_err(err);
  Invocation invocation{{argv, argv + argc}, terminal, shown_out, shown_err};
  return static_cast<int>(run_and_translate_errors(invocation));
}

}  // namespace offprof
