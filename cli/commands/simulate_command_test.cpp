#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"
#include "tests/support/sample_layouts.h"
#include "tests/support/sample_trace.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class SimulateCommandTest : public testing::Test {
 protected:
  CliRun simulate(const Trace& trace, std::vector<std::string> words = {}) const {
    write_trace(trace_, trace);
    words.insert(words.begin(), {"simulate", "--trace", trace_});
    return run_words(words);
  }
  nlohmann::json simulate_json(const Trace& trace, std::vector<std::string> words = {}) const {
    words.insert(words.end(), {"--format", "json"});
    return nlohmann::json::parse(simulate(trace, words).out);
  }

  TemporaryFolder folder_{"simulate_command"};
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(SimulateCommandTest, MarksModelledTimes) {
  EXPECT_THAT(simulate(virtual_sample_trace()).out, HasSubstr("times      modelled, not measured"));
  EXPECT_THAT(simulate(sample_trace()).out, Not(HasSubstr("modelled")));
  EXPECT_EQ(simulate_json(virtual_sample_trace())["times_are_modelled"], true);
  EXPECT_FALSE(simulate_json(sample_trace()).contains("times_are_modelled"));
}

TEST_F(SimulateCommandTest, StatesTheExcessOverDeviceMemory) {
  EXPECT_THAT(simulate(sample_trace(), {"--policy", "keep", "--device-memory", "3KiB"}).out,
              HasSubstr("It does not fit into 3.00 KiB: 1.09 KiB too much."));
}

TEST_F(SimulateCommandTest, ExitsWithStatus1IfTheStepDoesNotFit) {
  EXPECT_EQ(simulate(sample_trace(), {"--policy", "keep", "--device-memory", "3KiB"}).status, 1);
  EXPECT_EQ(simulate(sample_trace(), {"--policy", "keep", "--device-memory", "1GiB"}).status, 0);
  EXPECT_THAT(run_words({"simulate", "--help"}).out, HasSubstr("exit status 1 if not"));
}

TEST_F(SimulateCommandTest, TheNextCommandAssumesTheSameLink) {
  const CliRun run =
      simulate(sample_trace(), {"--policy", "keep", "--device-memory", "3KiB", "--link", "2GB/s,3us,shared"});
  const std::string next =
      "Next: offprof tune " + trace_ + " --device-memory 3072B --link 2000000000B/s,3000ns,shared\n";
  EXPECT_THAT(run.out, HasSubstr(next));
}

TEST_F(SimulateCommandTest, TheHintNamesTheRunThatMeasuresWhatThePolicyNeeds) {
  const auto hint = [&](const std::string& placement) {
    PolicyFile file{preset_policy("offload"), std::nullopt, {}};
    file.policy.rules = {{.placement = parse_placement(placement)}};
    const std::string policy = folder_ / "my policy.json";
    write_file(policy, format_policy_file(file));
    return unwrapped(simulate(sample_trace(), {"--policy", policy}).err);
  };
  const std::string command =
      "hint: Record it: offprof run model.pt --policy '" + (folder_ / "my policy.json") + "' -o trace.json";
  EXPECT_THAT(hint("recompute"), HasSubstr(command));
  EXPECT_THAT(hint("bits"), HasSubstr(command));
}

TEST_F(SimulateCommandTest, TheHintNamesTheTraceToTuneIfThePlanIsOfAnother) {
  PolicyFile file{preset_policy("offload"), std::nullopt, {}};
  file.policy.tensors = {0};
  file.trace_fingerprint = "sha256:0";
  const std::string policy = folder_ / "policy.json";
  write_file(policy, format_policy_file(file));
  EXPECT_THAT(unwrapped(simulate(sample_trace(), {"--policy", policy}).err),
              HasSubstr("hint: Tune the trace: offprof tune " + trace_ + " -o policy.json"));
}

TEST_F(SimulateCommandTest, AcceptsTheTraceAsAnArgument) {
  const CliRun named = simulate(sample_trace());
  EXPECT_EQ(run_words({"simulate", trace_}).out, named.out);
  EXPECT_EQ(run_words({"simulate", "other.json", "--trace", trace_}).status, 2);
}

TEST_F(SimulateCommandTest, CountsReservedMemoryIfThereIsAnAllocator) {
  const std::vector<std::string> policy = {"--policy", "keep", "--device-memory"};
  const auto within = [&](const char* memory) {
    std::vector<std::string> words = policy;
    words.emplace_back(memory);
    return simulate(virtual_sample_trace(), words).out;
  };
  EXPECT_THAT(within("2MiB"), HasSubstr("It fits into 2.00 MiB."));
  EXPECT_THAT(within("1MiB"),
              HasSubstr("It does not fit into 1.00 MiB: PyTorch's allocator reserves 2.00 MiB, "
                        "1.00 MiB too much."));
}

TEST_F(SimulateCommandTest, StatesNoExcessIfAMemoryFractionIsTheReason) {
  Trace trace = virtual_sample_trace();
  trace.environment.device_memory_bytes = 4 * kMiB;
  trace.program.allocator->settings = "per_process_memory_fraction:0.5";
  AllocatorBlock& rest = trace.program.allocator->segments[0].blocks.back();
  rest = {rest.bytes, rest.bytes, true, -1};  // makes the step need another segment
  EXPECT_THAT(simulate(trace, {"--policy", "keep", "--device-memory", "4MiB"}).out,
              HasSubstr("It does not fit into 4.00 MiB.\nNext: offprof tune " + trace_ +
                        " --device-memory 4194304B\n"));
}

/// Returns a trace whose calibration is uncertain: each of three hooks takes between 0 and 20 us, in a step
/// of 3.3 us.
Trace doubtful_trace() {
  Trace trace = sample_trace();
  trace.environment.calibration.emplace().hook = {1000, 0, 20'000};
  trace.program.compute_spread_ns.assign(trace.program.events.size(), 0);
  return trace;
}

TEST_F(SimulateCommandTest, OmitsDigitsThatTheCalibrationLeavesUncertain) {
  const CliRun run = simulate(doubtful_trace(), {"--policy", "keep"});
  EXPECT_THAT(run.err, HasSubstr("a saved-tensor hook took 0 ns to 20.0 us"));
  EXPECT_THAT(run.out, HasSubstr("the step takes ~3 us to ~63 us"));
  EXPECT_THAT(run.out, HasSubstr("~10 us"));
  EXPECT_THAT(run.out, Not(HasSubstr("6.30 us")));
  EXPECT_THAT(simulate(sample_trace(), {"--policy", "keep"}).out, HasSubstr("3.30 us"));
}

TEST_F(SimulateCommandTest, JsonHasTheWarningsAndTheRange) {
  const nlohmann::json json = simulate_json(doubtful_trace(), {"--policy", "keep"});
  EXPECT_THAT(json["warnings"][0].get<std::string>(), HasSubstr("a saved-tensor hook took 0 ns to 20.0 us"));
  EXPECT_EQ(json["step_time_range_ns"]["low"], 3300);
  EXPECT_EQ(json["step_time_range_ns"]["high"], 63'300);
  EXPECT_FALSE(simulate_json(virtual_sample_trace()).contains("warnings"));
}

TEST_F(SimulateCommandTest, AModelledTimeHasARange) {
  const nlohmann::json json = simulate_json(modelled_sample_trace(), {"--policy", "keep"});
  const nlohmann::json& range = json["step_time_range_ns"];
  EXPECT_LT(range["low"], json["predicted"]["step_time_ns"]);
  EXPECT_GT(range["high"], json["predicted"]["step_time_ns"]);
  const CliRun run = simulate(modelled_sample_trace(), {"--policy", "keep"});
  EXPECT_THAT(run.out, AllOf(ContainsRegex("step 9\\.[0-9]+ us \\([0-9.]+ to [0-9.]+\\)"),
                             HasSubstr("range      beside the step time")));
  EXPECT_THAT(simulate(virtual_sample_trace()).out, Not(HasSubstr("range ")));
}

TEST_F(SimulateCommandTest, RejectsALinkThatIsTooSlow) {
  Trace trace = sample_trace();
  trace.program.storages[2].bytes = 10 * kGiB;
  const CliRun run = simulate(trace, {"--link", "1B/s"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("15 years"));
}

TEST_F(SimulateCommandTest, AcceptsAStepProgramWithoutEvents) {
  Trace trace = sample_trace();
  trace.program.events.clear();
  trace.program.saved.clear();
  EXPECT_EQ(simulate(trace).status, 0);
}

TEST_F(SimulateCommandTest, RejectsADeviceWithoutMemory) {
  const CliRun run = simulate(sample_trace(), {"--device-memory", "0"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--device-memory: '0' is less than 1 B"));
}

/// Returns a trace whose backward differs if tensors come back dense.
Trace trace_with_dense_program() {
  Trace trace = sample_trace();
  trace.program = program_of_layouts(0);
  trace.dense_program = program_of_layouts(50);
  return trace;
}

TEST_F(SimulateCommandTest, MarksAPredictionThatMayBeInexact) {
  const std::vector<std::string> some = {"--policy", "trl", "--threshold", std::to_string(kLarge),
                                         "--stash",  "0"};
  EXPECT_THAT(simulate(trace_with_dense_program(), some).err,
              HasSubstr("predictions of this setting of TRL's rules may be inexact"));
  EXPECT_EQ(simulate_json(trace_with_dense_program(), some)["may_be_inexact"], true);
}

TEST_F(SimulateCommandTest, MarksNothingIfTheTraceHasTheStepProgram) {
  const std::vector<std::string> all = {"--policy", "trl", "--threshold", "0", "--stash", "0"};
  EXPECT_FALSE(simulate_json(trace_with_dense_program(), all).contains("may_be_inexact"));
}

}  // namespace
}  // namespace offprof
