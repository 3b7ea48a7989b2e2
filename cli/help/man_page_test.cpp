#include "cli/help/man_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program/command_table.h"
#include "tests/support/cli_run.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::HasSubstr;

CommandEntry entry_with(std::string_view summary, std::string_view examples) {
  return {"copy", summary, examples, nullptr};
}

TEST(ManPage, EscapesTheCharactersOfRoff) {
  const ManPage page = command_man_page(entry_with("Copy a-b", ".first\n'second \\n\n"), CLI::App());
  EXPECT_THAT(page.text, HasSubstr("offprof\\-copy \\- Copy a\\-b\n"));
  EXPECT_THAT(page.text, HasSubstr("\n\\&.first\n\\&'second \\en\n"));
}

TEST(ManPage, ListsOptionsWithTheirTypesByGroup) {
  CLI::App app;
  std::string path;
  app.add_option("-o,--output", path, "File for `x`")->type_name("FILE")->group("Results");
  EXPECT_THAT(
      command_man_page(entry_with("Copy", ""), app).text,
      HasSubstr(".SH RESULTS\n.TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\nFile for \\fBx\\fR\n"));
}

TEST(ManPage, ProgramListsEveryCommand) {
  const std::string page = run_words({"man"}).out;
  for (const CommandEntry& entry : command_table())
    EXPECT_THAT(page, HasSubstr("offprof\\-" + std::string(entry.name) + "\\fR(1)"));
}

TEST(ManPage, EveryCommandHasAPageInTheFolder) {
  const TemporaryFolder folder("man_pages");
  ASSERT_EQ(run_words({"man", "--directory", folder / "man1"}).status, 0);
  for (const CommandEntry& entry : command_table())
    EXPECT_THAT(read_file(folder / ("man1/offprof-" + std::string(entry.name) + ".1")),
                HasSubstr(".SH EXAMPLES"));
  EXPECT_TRUE(std::filesystem::exists(folder / "man1/offprof.1"));
}

TEST(ManPage, SuggestsTheMostSimilarCommand) {
  const CliRun run = run_words({"man", "tnue"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("Did you mean `tune`?"));
}

}  // namespace
}  // namespace offprof
