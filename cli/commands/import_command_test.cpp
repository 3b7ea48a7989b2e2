#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"
#include "tests/support/layered_trace.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::HasSubstr;

class ImportCommandTest : public testing::Test {
 protected:
  CliRun import_text(const std::string& source, const std::string& text,
                     const std::vector<std::string>& more = {}) const {
    write_file(config_, text);
    std::vector<std::string> words = {"import", config_, "--from", source};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }
  std::string trace() const {
    write_trace(folder_ / "trace.json", layered_trace({{"a", 4096}, {"b", 8192}, {"c", 4096}}));
    return folder_ / "trace.json";
  }

  TemporaryFolder folder_{"import_command"};
  std::string config_ = folder_ / "config";
};

TEST_F(ImportCommandTest, WritesThePolicyToStandardOutput) {
  const CliRun run = import_text("trl", "activation_offloading: true\n");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(parse_policy_file(run.out, "out").policy, preset_policy("trl-trainer"));
  EXPECT_THAT(run.err, HasSubstr("settings of TRL"));
}

TEST_F(ImportCommandTest, PredictsTheFiguresOnATrace) {
  const std::string policy = folder_ / "policy.json";
  const std::string code = "OffloadActivations(min_offload_size=1, max_fwd_stash_size=1)\n";
  const CliRun run = import_text("trl", code, {"--trace", trace(), "-o", policy, "--format", "json"});
  // The stash holds two tensors while the next one is saved: 1000 + 8192 + 4096.
  EXPECT_EQ(nlohmann::json::parse(run.out)["predicted"]["device_peak_bytes"], 1000 + 8192 + 4096);
  EXPECT_EQ(read_policy_file(policy).predicted->device_peak_bytes, 1000 + 8192 + 4096);
}

TEST_F(ImportCommandTest, SaysWhoseFiguresTheyAre) {
  EXPECT_THAT(unwrapped(import_text("trl", "activation_offloading: true\n", {"--trace", trace()}).err),
              HasSubstr("The figures are those of TRL, whose rules the policy has."));
  EXPECT_THAT(unwrapped(import_text("megatron", "--cpu-offloading-num-layers 1\n", {"--trace", trace()}).err),
              HasSubstr("those of offprof's engine under this policy: offprof does not model Megatron-LM's"));
}

TEST_F(ImportCommandTest, WarnsIfNoTensorOfTheTraceMatches) {
  EXPECT_THAT(import_text("megatron", "--cpu-offloading-num-layers 1\n", {"--trace", trace()}).err,
              HasSubstr("warning: "));
}

TEST_F(ImportCommandTest, KeepsTheOffloadOfParameters) {
  const CliRun run =
      import_text("deepspeed", R"({"zero_optimization": {"offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(parse_policy_file(run.out, "out").parameters, (ParameterSettings{"host", std::nullopt}));
}

TEST_F(ImportCommandTest, WritesNothingForDamagedSettings) {
  const std::string policy = folder_ / "policy.json";
  const CliRun run = import_text("deepspeed", "{", {"-o", policy});
  EXPECT_EQ(run.status, 2);
  EXPECT_THROW(read_file(policy), std::exception);
}

}  // namespace
}  // namespace offprof
