#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RunCommand, RejectsADeviceWithoutMemory) {
  const CliRun run = run_words({"run", "model.pt", "--device-memory", "0"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--device-memory: '0' is less than 1 B"));
}

TEST(RunCommand, RefusesOptionsOfScriptsForAModel) {
  for (const char* option : {"--patience", "--apply", "--step-function", "--shape"}) {
    const CliRun run = run_words({"run", "model.pt", option, "1"});
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(run.err, AllOf(HasSubstr(option), HasSubstr("model.pt is a TorchScript module")));
  }
  EXPECT_THAT(run_words({"run", "model.pt", "--continue"}).err,
              HasSubstr("--continue is for training scripts"));
}

TEST(RunCommand, HelpStatesTheMinimumCountsAndTheReasonsForFailure) {
  EXPECT_THAT(run_words({"run", "--help"}).out,
              AllOf(HasSubstr("Measured steps, at least 1"), HasSubstr("Warm-up steps, at least 1"),
                    HasSubstr("run --check-streams: streams race")));
}

}  // namespace
}  // namespace offprof
