#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/steps/trace_steps.h"
#include "tests/support/cli_run.h"
#include "tests/support/layered_trace.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ExportCommandTest : public testing::Test {
 protected:
  void SetUp() override { write_trace(trace_, layered_trace({{"a", 4096}, {"b", 8192}, {"c", 4096}})); }

  CliRun run_export(const std::string& policy, const std::string& target,
                    const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"export", policy, "--trace", trace_, "--to", target};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }
  nlohmann::json export_json(const std::string& policy, const std::string& target) const {
    return nlohmann::json::parse(run_export(policy, target, {"--format", "json"}).out);
  }

  TemporaryFolder folder_{"export_command"};
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(ExportCommandTest, ShowsTheFiguresOfBothEngines) {
  const CliRun run = run_export("offload", "trl");
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, HasSubstr("offprof"));
  EXPECT_THAT(run.out, HasSubstr("TRL"));
  EXPECT_THAT(run.out, HasSubstr("min_offload_size=1,"));
}

TEST_F(ExportCommandTest, RecordsOnlyScriptsAndOnlyCodeThatCanBeApplied) {
  const CliRun other_engine = run_export("offload", "trl", {"--record"});
  EXPECT_EQ(other_engine.status, 2);
  EXPECT_THAT(other_engine.err, HasSubstr("--record is for pytorch, and not for trl"));
  const CliRun model = run_export("offload", "pytorch", {"--record"});
  EXPECT_EQ(model.status, 2);
  EXPECT_THAT(model.err, HasSubstr("traces of training scripts"));
}

TEST_F(ExportCommandTest, WritesAMemorySnapshotThatImportReads) {
  const std::string snapshot = folder_ / "snapshot.pickle", imported = folder_ / "imported.json";
  for (const char* policy : {"keep", "offload"}) {
    const CliRun run = run_export(policy, "memory-snapshot", {"-o", snapshot, "--format", "json"});
    ASSERT_EQ(run.status, 0) << run.err;
    const auto exported = nlohmann::json::parse(run.out);
    ASSERT_EQ(run_words({"import", snapshot, "-o", imported}).status, 0);
    EXPECT_THAT(run_words({"view", imported}).out,
                AllOf(HasSubstr("Next: offprof report"), Not(HasSubstr("saved by operator"))));
    const Metrics simulated = TraceSteps(read_trace(trace_)).predict(preset_policy(policy), {});
    EXPECT_EQ(exported["device_peak_bytes"], *simulated.device_peak_bytes) << policy;
    EXPECT_EQ(read_trace(imported).metrics.device_peak_bytes, simulated.device_peak_bytes) << policy;
    EXPECT_EQ(TraceSteps(read_trace(imported)).predict(preset_policy("keep"), {}).device_peak_bytes,
              simulated.device_peak_bytes)
        << policy;
  }
}

TEST_F(ExportCommandTest, WritesTheSnapshotOfATracesOwnPolicy) {
  const std::string snapshot = folder_ / "snapshot.pickle";
  const CliRun run = run_words({"export", trace_, "--to", "memory-snapshot", "-o", snapshot});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("under its own policy"));
  EXPECT_EQ(run_words({"export", trace_, "--to", "memory-snapshot", "-o", "-"}).status, 2);
  EXPECT_THAT(run_words({"export", "keep", "--to", "trl"}).err, HasSubstr("--trace is missing"));
}

TEST_F(ExportCommandTest, PredictsTrlUnderItsOwnRules) {
  const nlohmann::json json = export_json("offload", "trl");
  // offprof: one tensor at a time on the device. TRL's stash holds a second one: 1000 + 8192 + 4096.
  EXPECT_EQ(json["predicted"]["device_peak_bytes"], 1000 + 8192);
  EXPECT_EQ(json["engine_predicted"]["device_peak_bytes"], 1000 + 8192 + 4096);
  EXPECT_EQ(json["engine_policy"]["scheduler"], "trl");
  EXPECT_EQ(json["settings"]["min_offload_size"], 1);
  EXPECT_EQ(json["settings"]["max_fwd_stash_size"], 1);
}

TEST_F(ExportCommandTest, SaysThatAnEngineIsNotModelled) {
  EXPECT_THAT(run_export("offload", "deepspeed").out,
              HasSubstr("No figures of DeepSpeed: offprof does not model DeepSpeed's rules."));
  const nlohmann::json json = export_json("offload", "deepspeed");
  EXPECT_FALSE(json.contains("engine_predicted"));
  EXPECT_EQ(json["no_figures"], "offprof does not model DeepSpeed's rules.");
}

TEST_F(ExportCommandTest, WritesOnlyTheSettingsToAFile) {
  const std::string path = folder_ / "settings.json";
  const CliRun run = run_export("offload", "deepspeed", {"-o", path});
  EXPECT_EQ(nlohmann::json::parse(read_file(path))["activation_checkpointing"]["cpu_checkpointing"], true);
  EXPECT_THAT(run.out, Not(HasSubstr("cpu_checkpointing\"")));
}

TEST_F(ExportCommandTest, KeepsTheReportApartFromSettingsOnStandardOutput) {
  const CliRun run = run_export("offload", "deepspeed", {"-o", "-"});
  EXPECT_TRUE(nlohmann::json::accept(run.out));
  EXPECT_THAT(run.err, HasSubstr("No figures of DeepSpeed"));
}

TEST_F(ExportCommandTest, WritesNothingIfTheEngineCanExpressNothing) {
  const std::string path = folder_ / "settings.py";
  const CliRun run = run_export("keep", "trl", {"-o", path});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), HasSubstr("moves no tensor of this step, so TRL has nothing to offload"));
  EXPECT_THROW(read_file(path), std::exception);
}

TEST_F(ExportCommandTest, ListsTheEnginesForAnUnknownOne) {
  const CliRun run = run_export("offload", "trll");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("torchtune"));
}

TEST_F(ExportCommandTest, RefusesAPlanForAnotherStep) {
  Policy policy;
  policy.tensors = {0};
  write_file(folder_ / "plan.json", format_policy_file({policy, std::nullopt, "0123456789abcdef"}));
  EXPECT_EQ(run_export(folder_ / "plan.json", "trl").status, 2);
}

}  // namespace
}  // namespace offprof
