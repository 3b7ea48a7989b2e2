#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class AdviseCommandTest : public testing::Test {
 protected:
  CliRun advise(std::vector<std::string> words) const {
    words.insert(words.begin(), "advise");
    return run_words(words);
  }

  TemporaryFolder folder_{"advise_command"};
  std::string trace_ = folder_ / "trace.json", policy_ = folder_ / "policy.json";
};

TEST_F(AdviseCommandTest, ComparesATraceWithoutRecording) {
  write_trace(trace_, virtual_sample_trace());
  const CliRun run = advise({"-t", trace_});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(unwrapped(run.out), AllOf(HasSubstr("1 trace, "), HasSubstr("not tried; with a program")));
}

TEST_F(AdviseCommandTest, EndsWithStatus1IfNothingFits) {
  write_trace(trace_, virtual_sample_trace());
  const CliRun run = advise({"-t", trace_, "--memory-budget", "1MiB"});
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Nothing is within the limits; nearest: "));
}

TEST_F(AdviseCommandTest, WritesThePolicyWithTheFingerprintOfTheSavedTensors) {
  const Trace trace = sample_trace();
  write_trace(trace_, trace);
  const CliRun run = advise({"-t", trace_, "--goal", "memory", "-o", policy_});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(read_policy_file(policy_).saved_fingerprint, fingerprint_of_saved(trace.program.saved));
}

TEST_F(AdviseCommandTest, RefusesASecondTraceOfTheSameConfiguration) {
  write_trace(trace_, sample_trace());
  const CliRun run = advise({"-t", trace_, "-t", trace_, "-o", policy_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), HasSubstr("an earlier trace has the same configuration"));
  EXPECT_FALSE(std::filesystem::exists(policy_));
}

TEST_F(AdviseCommandTest, RefusesATraceAndAProgram) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"model.pt"}, {"--device", "host"}, {"--patience", "30s"}}) {
    std::vector<std::string> all = {"-t", trace_};
    all.insert(all.end(), words.begin(), words.end());
    const CliRun run = advise(all);
    EXPECT_EQ(run.status, 2);
    EXPECT_THAT(unwrapped(run.err), AllOf(HasSubstr("--trace"), HasSubstr("excludes")));
  }
}

TEST_F(AdviseCommandTest, RefusesJobsThatItCannotRecord) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"model.pt", "--world-size", "2"}, "--world-size is for training scripts"},
      {{"train.py", "--world-size", "2", "--device", "host"}, "needs a virtual GPU"},
      {{"train.py", "--world-size", "2", "--goal", "batch", "--size-argument", "--n"}, "for --goal time and"},
      {{"train.py", "--device", "virtual", "--world-size", "4..12"}, "12 ranks do not fill nodes of 8"},
      {{"train.py", "--ranks-per-node", "4"}, "need --world-size"},
      {{"train.py", "--cluster", "dgx-h100"}, "need --world-size"},
      {{"train.py", "--world-size", "8..2"}, "2 is less than 8"}};
  for (const auto& [words, message] : refused) {
    const CliRun run = advise(words);
    EXPECT_EQ(run.status, 2) << message;
    EXPECT_THAT(unwrapped(run.err), HasSubstr(message));
  }
}

TEST_F(AdviseCommandTest, RefusesSizesThatItCannotChange) {
  const auto error_of = [&](const std::vector<std::string>& words) {
    const CliRun run = advise(words);
    EXPECT_EQ(run.status, 2) << run.out;
    return unwrapped(run.err);
  };
  EXPECT_THAT(error_of({"train.py", "--goal", "batch"}),
              HasSubstr("--size-argument --batch-size -- --batch-size 8"));
  EXPECT_THAT(error_of({"model.pt", "--goal", "sequence", "--size-argument", "--seq"}),
              HasSubstr("the size of a model is that of its inputs"));
  EXPECT_THAT(error_of({"train.py", "--size-argument", "--batch"}), HasSubstr("for --goal batch"));
  write_trace(trace_, virtual_sample_trace());
  EXPECT_THAT(error_of({"-t", trace_, "--goal", "batch"}), HasSubstr("need recordings of several sizes"));
}

TEST_F(AdviseCommandTest, RefusesUnknownOptimizers) {
  const CliRun run = advise({"model.pt", "--optimizer", "adamw:state=fp16"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), AllOf(HasSubstr("unknown optimizer 'adamw:state=fp16'"),
                                        HasSubstr("adamw:state=fp32|bf16|8bit")));
}

TEST_F(AdviseCommandTest, RefusesAChoiceOfStepsThatDoesNotExist) {
  EXPECT_EQ(advise({"train.py", "--shape", "smallest"}).status, 2);
}

}  // namespace
}  // namespace offprof
