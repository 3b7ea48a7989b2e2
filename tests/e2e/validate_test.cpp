// `offprof validate` compares predictions with real runs, on the host and on a virtual GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class ValidateTest : public testing::Test {
 protected:
  /// Records a trace of qwen2 from tests/models.
  static std::vector<std::string> run_of_qwen(const std::vector<std::string>& more) {
    return joined(
        {"run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--steps", "2"}, more);
  }
  std::string trace_of_qwen(const std::vector<std::string>& more) {
    const Ended ended = run_program(joined(run_of_qwen({"--policy", "offload", "-o", trace_}), more));
    EXPECT_EQ(ended.status, 0) << ended.err;
    return trace_;
  }
  Ended validate(const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"validate",   model, "--trace",  trace_,
                                          "--policies", "6",   "--rounds", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  /// `settings` are the 6 that `validate` asks for and 2 with recomputation, which a virtual GPU has
  /// recorded.
  static void expect_exact_memory(const json& report, std::size_t settings = 8) {
    EXPECT_EQ(report["memory_is_exact"], true);
    EXPECT_EQ(report["settings"].size(), settings);
    for (const json& setting : report["settings"]) EXPECT_THAT(setting["inexact"], IsEmpty());
  }

  TestFolder folder_;
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(ValidateTest, EveryStepTimeIsExactOnAVirtualGpu) {
  trace_of_qwen({"--device", "virtual:h200", "--link", "2GB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  expect_exact_memory(report);
  EXPECT_EQ(report["device"], "virtual:h200");
  EXPECT_EQ(report["by_trace"]["max_error"], 0);
  EXPECT_EQ(report["by_trace"]["mean_noise"], 0);
  EXPECT_EQ(report["by_trace"]["kendall_tau"], 1);
  EXPECT_TRUE(report["drift"].is_null());
  EXPECT_EQ(report["outcome"], "hold");
  EXPECT_EQ(report["settings"][0]["sets_drift"], false);
  EXPECT_EQ(report["settings"][0]["step_times_ns"].size(), 2u);
}

/// The settings contain each placement that the trace has measured, alone and combined with others.
TEST_F(ValidateTest, RunsSettingsWithRulesThatTheTraceHasMeasured) {
  trace_of_qwen({"--device", "virtual:h200", "--transforms", "all", "--disk-bandwidth", "1GB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  EXPECT_EQ(report["memory_is_exact"], true);
  EXPECT_EQ(report["by_trace"]["max_error"], 0);
  std::set<std::string> placements;
  for (const json& setting : report["settings"])
    for (const json& rule : setting["policy"].value("rules", json::array()))
      placements.insert(rule["placement"]);
  EXPECT_THAT(placements, testing::IsSupersetOf({"disk", "recompute", "host", "quantize:uint8:128",
                                                 "cast:bfloat16+host", "quantize:uint8+disk"}));
}

struct Training {
  const char* name;
  std::vector<std::string> flags;
  std::size_t settings = 8;
};

class ValidateTrained : public ValidateTest, public testing::WithParamInterface<Training> {};

TEST_P(ValidateTrained, EverySettingIsExact) {
  trace_of_qwen(joined({"--device", "virtual:h200", "--link", "2GB/s"}, GetParam().flags));
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  expect_exact_memory(report, GetParam().settings);
  EXPECT_EQ(report["by_trace"]["max_error"], 0);
}

/// With micro-batches, the activations between slices are stored where the parameters are, so no tensor is
/// left for a policy to place. Nothing is recomputed with slices.
const Training kTrainings[] = {
    {"Checkpointing", {"--checkpoint", "*.mlp"}},
    {"Slices", {"--slices", "3"}, 6},
    {"Microbatches", {"--slices", "3", "--microbatches", "2"}, 1},
    {"MicrobatchesOnTheDevice", {"--slices", "3", "--microbatches", "2", "--offload-params", "none"}, 6},
    {"ParameterOffload", {"--offload-params", "host"}},
    {"ParametersOnTheDisk", {"--offload-params", "disk", "--disk-bandwidth", "1GB/s"}, 10},
};

INSTANTIATE_TEST_SUITE_P(, ValidateTrained, testing::ValuesIn(kTrainings),
                         [](const auto& test) { return test.param.name; });

TEST_F(ValidateTest, MemoryIsExactWithParametersOnTheDisk) {
  trace_of_qwen({"--device", "host", "--calibration", "brief", "--offload-params", "disk",
                 "--offload-params-dir", folder_.path()});
  const Ended ended =
      validate(model_path("qwen2.pt"), {"--offload-params-dir", folder_.path(), "--format", "json"});
  const json report = json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << ended.err;
  EXPECT_EQ(report["memory_is_exact"], true);
  EXPECT_EQ(report["gradients_are_right"], true);
}

/// The trace states the window that its run chose; the runs of the settings are given it.
TEST_F(ValidateTest, ReservedMemoryIsExactWithParametersOnTheHost) {
  trace_of_qwen({"--device", "virtual:h200", "--offload-params", "host"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  expect_exact_memory(json::parse(ended.out));
}

TEST_F(ValidateTest, MemoryIsExactWithRulesOnTheHost) {
  trace_of_qwen({"--device", "host", "--calibration", "brief", "--transforms", "recompute,cast:bfloat16",
                 "--disk", folder_.path()});
  const Ended ended = validate(model_path("qwen2.pt"), {"--disk", folder_.path(), "--format", "json"});
  const json report = json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << ended.err;
  EXPECT_EQ(report["memory_is_exact"], true);
  EXPECT_EQ(report["gradients_are_right"], true);
  EXPECT_EQ(report["settings"].size(), 6u + 2 * 5);  // disk, recompute; cast alone, to the host, to the disk
}

TEST_F(ValidateTest, RejectsADiskThatTheTraceHasNotMeasured) {
  trace_of_qwen({"--device", "virtual:h200"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--disk-bandwidth", "1GB/s"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("does not contain the speed of a disk"));
}

/// Returns true if in more than one visit of ten the cores were not as far apart as when the trace was
/// recorded. Then an error beyond its bound means nothing.
bool cores_were_apart(const json& report) {
  std::size_t visits = 0;
  for (const json& setting : report["settings"]) visits += setting["step_times_ns"].size();
  return 10 * report["displaced_visits"].get<std::size_t>() > visits;
}

/// Checks the properties of a report of the host that do not depend on its times.
void expect_consistent(const json& report, int status) {
  const json& outcome = report["outcome"];
  EXPECT_THAT(outcome, AnyOf("hold", "cannot tell", "do not hold"));
  EXPECT_EQ(status, outcome == "do not hold" ? 1 : 0);
  EXPECT_EQ(report["ok"], outcome == "hold");
  for (const json& verdict : report["verdicts"]) {
    EXPECT_THAT(verdict, AnyOf("within", "hidden by noise", "beyond", "nothing to rank"));
    if (verdict == "beyond") {
      EXPECT_EQ(outcome, cores_were_apart(report) ? "cannot tell" : "do not hold");
    }
    EXPECT_FALSE(verdict == "hidden by noise" && outcome == "hold");
  }
}

/// Expects two rounds, each with three visits to the setting that sets the drift and one to any other.
void expect_visits(const json& setting) {
  const bool is_keep = setting["policy"]["name"] == "keep";
  EXPECT_EQ(setting["sets_drift"], is_keep);
  auto times = setting["step_times_ns"].get<std::vector<std::int64_t>>();
  ASSERT_EQ(times.size(), is_keep ? 6u : 2u);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(setting["measured"]["step_time_ns"],
            std::midpoint(times[times.size() / 2 - 1], times[times.size() / 2]));
}

TEST_F(ValidateTest, RunsOnTheHostAndReportsTheOutcome) {
  trace_of_qwen({"--link", "500MB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_THAT(ended.status, AnyOf(0, 1)) << ended.err;
  const json report = json::parse(ended.out);
  expect_exact_memory(report, 6);
  expect_consistent(report, ended.status);
  EXPECT_EQ(report["device"], "host");
  EXPECT_TRUE(report["drift"].is_number());
  EXPECT_TRUE(report["recalibrated_drift"].is_number());
  for (const json& setting : report["settings"]) {
    EXPECT_EQ(setting["gradients"], "bitwise");
    expect_visits(setting);
  }
}

TEST_F(ValidateTest, TheLastLineStatesTheOutcome) {
  trace_of_qwen({"--device", "virtual:h200"});
  const Ended ended = validate(model_path("qwen2.pt"));
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("Memory, copied bytes and commands: no difference in any setting."));
  EXPECT_THAT(ended.out, EndsWith("The predictions hold.\n"));
}

TEST_F(ValidateTest, AcceptsATraceOfADeviceTooSmallForKeep) {
  const Bytes capacity = capacity_below_keep(run_of_qwen({"--device", "virtual:h200"}));
  trace_of_qwen({"--device", "virtual:h200", "--device-memory", std::to_string(capacity)});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  expect_exact_memory(report);
  EXPECT_GT(report["settings"][0]["measured"]["device_reserved_peak_bytes"], capacity);
  EXPECT_THAT(report["notes"][0].get<std::string>(), HasSubstr("without that cap"));
}

TEST_F(ValidateTest, LeavesOutSettingsThatDoNotFitIntoTheDevice) {
  json profile = json::parse(std::ifstream(OFFPROF_PROFILES "/l4.json"));
  profile["name"] = "tiny";
  profile["memory"]["context_bytes"] = 4 * kMiB;
  profile["memory"]["bytes"] = ((keeps_cublas_workspaces() ? 30 : 26) + 4) * kMiB;
  const std::string path = folder_ / "tiny.json";
  std::ofstream(path) << profile;
  trace_of_qwen({"--device", "virtual:" + path});
  const Ended ended = validate(model_path("qwen2.pt"), {"--device", "virtual:" + path, "--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  EXPECT_GT(report["left_out"], 0);
  EXPECT_EQ(report["settings"].size() + report["left_out"].get<std::size_t>(), 8u);
  EXPECT_NE(report["settings"][0]["policy"]["name"], "keep");
  EXPECT_EQ(report["memory_is_exact"], true);
}

TEST_F(ValidateTest, RejectsAnotherKindOfDevice) {
  trace_of_qwen({"--device", "virtual:h200"});
  for (const char* device : {"host", "virtual:l4"}) {
    const Ended ended = validate(model_path("qwen2.pt"), {"--device", device});
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(unwrapped(ended.err), HasSubstr("was recorded on virtual:h200"));
    EXPECT_THAT(ended.out, IsEmpty());
  }
}

TEST_F(ValidateTest, RejectsATraceOfAnotherModel) {
  trace_of_qwen({"--device", "virtual:h200"});
  const Ended ended = validate(model_path("shufflenet.pt"));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("is not the model of"));
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(ValidateTest, RejectsASimulatedTrace) {
  trace_of_qwen({"--device", "virtual:h200"});
  const std::string simulated = folder_ / "simulated.json";
  ASSERT_EQ(run_program({"simulate", "--trace", trace_, "-o", simulated}).status, 0);
  trace_ = simulated;
  const Ended ended = validate(model_path("qwen2.pt"));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("is simulated"));
}

TEST_F(ValidateTest, RejectsAFasterLinkThanTheTraces) {
  trace_of_qwen({"--device", "virtual:h200", "--link", "2GB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--link", "3GB/s"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("recorded with a slower --link"));
}

TEST_F(ValidateTest, RejectsFewerSettingsThanThePresets) {
  trace_of_qwen({"--device", "virtual:h200"});
  EXPECT_EQ(validate(model_path("qwen2.pt"), {"--policies", "2"}).status, 2);
}

}  // namespace
}  // namespace offprof
