#include "cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/base/version.h"
#include "cli/program/command_table.h"
#include "tests/support/cli_run.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kOk = static_cast<int>(ExitStatus::kOk);
constexpr int kBadInput = static_cast<int>(ExitStatus::kBadInput);

TEST(App, PrintsItsVersion) {
  const CliRun run = run_words({"--version"});
  EXPECT_EQ(run.status, kOk);
  EXPECT_EQ(run.out, "offprof " + std::string(program_version()) + "\n");
}

TEST(App, HelpListsEveryCommandAndTheExitCodes) {
  const CliRun run = run_words({"--help"});
  EXPECT_EQ(run.status, kOk);
  EXPECT_THAT(run.out, AllOf(HasSubstr("Examples:"), HasSubstr("Exit codes:")));
  for (const CommandEntry& entry : command_table())
    EXPECT_THAT(run.out, HasSubstr("\n  " + std::string(entry.name) + "  "));
}

TEST(App, EveryCommandHasHelpWithExamplesAndExitCodes) {
  for (const CommandEntry& entry : command_table()) {
    const CliRun run = run_words({std::string(entry.name), "--help"});
    EXPECT_EQ(run.status, kOk) << entry.name;
    EXPECT_THAT(run.out, AllOf(HasSubstr("Examples:"), HasSubstr("Exit codes:"))) << entry.name;
    EXPECT_EQ(run_words({"help", std::string(entry.name)}).out, run.out);
  }
}

/// Returns the options in a command's help that have no description. The help has the format "--flag VALUE
/// Description"; for a long flag the description is on the next line.
std::vector<std::string> options_without_text(const std::string& help) {
  constexpr std::size_t kTextColumn = 20;
  std::vector<std::string> found;
  std::istringstream lines(help);
  std::string line, next;
  std::getline(lines, line);
  for (; lines; line = next) {
    std::getline(lines, next);
    if (!line.starts_with("  -")) continue;
    const std::size_t gap = line.find("  ", 3);
    const bool has_text = gap != std::string::npos && line.find_first_not_of(' ', gap) != std::string::npos;
    const bool next_has_text =
        next.find_first_not_of(' ') != std::string::npos && next.find_first_not_of(' ') >= kTextColumn;
    if (!has_text && !next_has_text) found.push_back(line);
  }
  return found;
}

TEST(App, EveryOptionHasADescription) {
  for (const CommandEntry& entry : command_table())
    EXPECT_THAT(options_without_text(run_words({std::string(entry.name), "--help"}).out), IsEmpty())
        << entry.name;
}

TEST(App, ShowsHelpAsAnErrorWithoutACommand) {
  const CliRun run = run_words({});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("Commands:"));
}

TEST(App, SuggestsTheMostSimilarCommand) {
  const CliRun run = run_words({"veiw"});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_EQ(run.err, "error: there is no command 'veiw'\nhint: Did you mean `view`?\n");
}

TEST(App, SuggestsTheCommandThatTheWordBegins) {
  EXPECT_THAT(run_words({"tun"}).err, HasSubstr("Did you mean `tune`?"));
}

TEST(App, ReportsAnUnknownFlagBeforeAMissingOne) {
  const CliRun run = run_words({"gate", "--trcae", "t.json"});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_THAT(run.err, AllOf(HasSubstr("no option '--trcae'"), HasSubstr("Did you mean `--trace`?")));
}

TEST(App, NamesAMissingFlag) {
  const CliRun run = run_words({"export", "policy.json"});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--to is required"), HasSubstr("offprof export --help")));
}

TEST(App, SuggestsTheMostSimilarAction) {
  const CliRun run = run_words({"zoo", "lst"});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_THAT(run.err, AllOf(HasSubstr("it has: list, make"), HasSubstr("Did you mean `list`?")));
}

TEST(App, ReportsAMissingAction) {
  EXPECT_THAT(run_words({"zoo"}).err, HasSubstr("needs one of: list, make"));
}

TEST(App, RejectsTooManyArguments) {
  const CliRun run = run_words({"view", "a.json", "b.json"});
  EXPECT_EQ(run.status, kBadInput);
  EXPECT_THAT(run.err, HasSubstr("unexpected argument 'b.json'"));
}

TEST(App, RejectsFlagsBeforeTheCommand) {
  EXPECT_THAT(run_words({"-q", "view"}).err, HasSubstr("Write the command first"));
}

TEST(App, ColoursErrorsOnATerminalOnly) {
  const Terminal terminal{.out_is_terminal = true, .err_is_terminal = true};
  EXPECT_THAT(run_words({"rum"}, terminal).err, HasSubstr("\033["));
  EXPECT_THAT(run_words({"rum"}).err, Not(HasSubstr("\033[")));
  EXPECT_THAT(run_words({"view", "nonesuch", "--color", "never"}, terminal).err, Not(HasSubstr("\033[")));
  EXPECT_THAT(run_words({"view", "nonesuch", "--color=always"}).err, HasSubstr("\033["));
}

TEST(App, WrapsErrorsAndHintsAtTheTerminalsWidth) {
  const std::string err = run_words({"zoo"}, {.width = 30}).err;
  EXPECT_EQ(err,
            "error: `offprof zoo` needs one\n"
            "       of: list, make\n"
            "hint: See `offprof zoo\n"
            "      --help`.\n");
}

TEST(App, FailsIfTheOutputCannotBeWritten) {
  std::ostringstream err;
  std::ostream broken(nullptr);
  const char* argv[] = {"offprof", "--version"};
  EXPECT_EQ(run_cli(2, argv, broken, err), kBadInput);
  EXPECT_THAT(err.str(), HasSubstr("cannot write to standard output"));
}

}  // namespace
}  // namespace offprof
