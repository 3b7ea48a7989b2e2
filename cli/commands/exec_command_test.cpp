#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/cli_run.h"

// python/tests/test_exec.py runs commands; these are the command lines that run none.
namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ExecCommand, RequiresACommand) {
  const CliRun run = run_words({"exec"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("COMMAND is required"));
}

TEST(ExecCommand, RequiresTheMarkBeforeTheCommand) {
  const CliRun run = run_words({"exec", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err),
              AllOf(HasSubstr("'true' is before --"), HasSubstr("exec [OPTIONS] -- COMMAND")));
  EXPECT_THAT(run_words({"exec", "false", "--", "true"}).err, HasSubstr("'false' is before --"));
}

TEST(ExecCommand, AcceptsOnlyAVirtualGpu) {
  const CliRun run = run_words({"exec", "--device", "cuda", "--", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--device"), HasSubstr("'cuda' is not a virtual GPU")));
}

TEST(ExecCommand, RejectsAnUnknownProfile) {
  const CliRun run = run_words({"exec", "--device", "virtual:h2000", "--", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("h2000"));
}

TEST(ExecCommand, RejectsADeviceWithoutMemory) {
  const CliRun run = run_words({"exec", "--device-memory", "0", "--", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--device-memory"));
}

TEST(ExecCommand, RejectsRanksThatTheJobDoesNotHave) {
  const CliRun run = run_words({"exec", "--world-size", "4", "--rank", "0,4", "--", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("there is no rank 4 among 4 ranks"));
  EXPECT_THAT(run_words({"exec", "--rank", "1", "--", "true"}).err, HasSubstr("--rank needs --world-size"));
  EXPECT_THAT(run_words({"exec", "--world-size", "4", "--rank", "x", "--", "true"}).err,
              HasSubstr("--rank: 'x' is not a list of ranks"));
}

TEST(ExecCommand, RefusesALauncherOfRanksForARankAlone) {
  for (const auto& command :
       {std::vector<std::string>{"/usr/bin/torchrun", "train.py"},
        std::vector<std::string>{"python", "-m", "torch.distributed.run", "train.py"}}) {
    std::vector<std::string> words = {"exec", "--world-size", "8", "--"};
    words.insert(words.end(), command.begin(), command.end());
    const CliRun run = run_words(words);
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(unwrapped(run.err), HasSubstr("--world-size runs ranks alone"));
  }
}

TEST(ExecCommand, RefusesDevicesForARankAlone) {
  const CliRun run = run_words({"exec", "--world-size", "8", "--devices", "4", "--", "true"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--devices and --world-size exclude each other"));
}

TEST(ExecCommand, ChecksTheReportFileBeforeTheCommandRuns) {
  const TemporaryFolder folder("exec_command");
  const CliRun run = run_words({"exec", "-o", "/nonexistent/report.json", "--", "touch", folder / "ran"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("/nonexistent"));
  EXPECT_FALSE(std::filesystem::exists(folder / "ran"));
}

}  // namespace
}  // namespace offprof
