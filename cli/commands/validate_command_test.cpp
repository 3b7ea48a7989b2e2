#include "cli/commands/commands.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::Not;

class ValidateCommandTest : public testing::Test {
 protected:
  CliRun validate(Trace trace, const std::vector<std::string>& more) const {
    std::ofstream(model_) << "a model";
    trace.model.fingerprint = fingerprint_of_file(model_);
    write_trace(trace_, trace);
    std::vector<std::string> words = {"validate", model_, "--trace", trace_};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }

  TemporaryFolder folder_{"validate_command"};
  std::string model_ = folder_ / "model.pt";
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(ValidateCommandTest, RejectsAnotherKindOfDevice) {
  Trace trace = sample_trace();
  trace.environment.device = "cuda:1";
  const CliRun run = validate(trace, {"--device", "host"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(unwrapped(run.err), HasSubstr("was recorded on cuda:1"));
}

TEST_F(ValidateCommandTest, AcceptsTheDeviceOfTheTrace) {
  const CliRun run = validate(sample_trace(), {"--device", "host"});
  EXPECT_THAT(unwrapped(run.err), Not(HasSubstr("was recorded on")));
}

TEST_F(ValidateCommandTest, RefusesRoundsOfAScript) {
  write_trace(trace_, sample_trace());
  const CliRun run = run_words({"validate", "train.py", "--trace", trace_, "--rounds", "2"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), HasSubstr("a script runs once for each setting"));
}

TEST_F(ValidateCommandTest, RefusesATraceThatIsNotOfAScript) {
  write_trace(trace_, sample_trace());
  const CliRun run = run_words({"validate", "train.py", "--trace", trace_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), HasSubstr("was not recorded from a training script"));
}

TEST_F(ValidateCommandTest, HelpExplainsTheExitStatusUnderNoise) {
  EXPECT_THAT(unwrapped(run_words({"validate", "--help"}).out), HasSubstr("If noise hides whether"));
}

}  // namespace
}  // namespace offprof
