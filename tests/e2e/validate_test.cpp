// `offprof validate`: predictions held against real runs, on the host and on a virtual GPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/program.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class ValidateTest : public testing::Test {
 protected:
  /// A trace of tests/models' qwen2.
  std::string trace_of_qwen(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {
        "run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--steps", "2", "-o",
        trace_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return trace_;
  }
  Ended validate(const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"validate",   model, "--trace",  trace_,
                                          "--policies", "6",   "--rounds", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  static void expect_exact_memory(const json& report) {
    EXPECT_EQ(report["memory_is_exact"], true);
    EXPECT_EQ(report["settings"].size(), 6u);
    for (const json& setting : report["settings"]) EXPECT_THAT(setting["inexact"], IsEmpty());
  }

  TestFolder folder_;
  std::string trace_ = folder_ / "trace.json";
};

TEST_F(ValidateTest, OnAVirtualGpuEveryStepTimeIsExact) {
  trace_of_qwen({"--device", "virtual:h200", "--link", "2GB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json report = json::parse(ended.out);
  expect_exact_memory(report);
  EXPECT_EQ(report["device"], "virtual:h200");
  EXPECT_EQ(report["by_trace"]["max_error"], 0);
  EXPECT_EQ(report["by_trace"]["mean_noise"], 0);
  EXPECT_EQ(report["by_trace"]["kendall_tau"], 1);
  EXPECT_EQ(report["drift"], 0);
}

TEST_F(ValidateTest, OnTheHostItRunsForRealAndSaysWhatItFound) {
  trace_of_qwen({"--link", "500MB/s"});
  const std::vector<std::string> no_bounds = {"--max-mean-error", "1e9", "--max-p95-error", "1e9",
                                              "--min-tau",        "0"};
  std::vector<std::string> arguments = no_bounds;
  arguments.insert(arguments.end(), {"--format", "json"});
  const Ended ended = validate(model_path("qwen2.pt"), arguments);
  ASSERT_LE(ended.status, 1)
      << ended.err;  // 1: the few rounds of a busy machine rank the settings another way
  const json report = json::parse(ended.out);
  expect_exact_memory(report);
  EXPECT_EQ(report["device"], "host");
  for (const json& setting : report["settings"]) {
    EXPECT_EQ(setting["gradients"], "bitwise");
    const bool is_keep = setting["policy"]["name"] == "keep";
    EXPECT_EQ(setting["step_times_ns"].size(), is_keep ? 6u : 2u);
  }
  const Ended text = validate(model_path("qwen2.pt"), no_bounds);
  EXPECT_THAT(text.out, HasSubstr("Memory, copied bytes and commands: no difference in any setting."));
}

TEST_F(ValidateTest, RefusesATraceOfAnotherModel) {
  trace_of_qwen({"--device", "virtual:h200"});
  const Ended ended = validate(model_path("shufflenet.pt"));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("is not the model that"));
  EXPECT_THAT(ended.out, IsEmpty());
}

TEST_F(ValidateTest, RefusesASimulatedTrace) {
  trace_of_qwen({"--device", "virtual:h200"});
  const std::string simulated = folder_ / "simulated.json";
  ASSERT_EQ(run_program({"simulate", "--trace", trace_, "-o", simulated}).status, 0);
  trace_ = simulated;
  const Ended ended = validate(model_path("qwen2.pt"));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("is simulated"));
}

TEST_F(ValidateTest, RefusesAFasterLinkThanTheTraces) {
  trace_of_qwen({"--device", "virtual:h200", "--link", "2GB/s"});
  const Ended ended = validate(model_path("qwen2.pt"), {"--link", "3GB/s"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("slowed down further"));
}

TEST_F(ValidateTest, RefusesFewerSettingsThanThePresets) {
  trace_of_qwen({"--device", "virtual:h200"});
  EXPECT_EQ(validate(model_path("qwen2.pt"), {"--policies", "2"}).status, 2);
}

}  // namespace
}  // namespace offprof
