// The main workflow with the user's command lines: run, tune, run with the tuned policy, gate.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kExactKeys[] = {"device_peak_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes"};

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class MainJob : public testing::Test {
 protected:
  /// Runs offprof with `--format json` and returns the report.
  json report(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false);
  }
  json run(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--steps", "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return report(arguments);
  }

  TestFolder folder_;
};

TEST_F(MainJob, TheTunedPolicyMeasuresTunesPrediction) {
  run({"-o", folder_ / "trace.json"});
  const json tuned = report({"tune", "--trace", folder_ / "trace.json", "-o", folder_ / "policy.json"});
  const json measured = run({"--policy", folder_ / "policy.json", "-o", folder_ / "tuned.json.gz"});
  for (const char* key : kExactKeys) {
    EXPECT_EQ(measured["measured"][key], tuned["chosen"]["predicted"][key]) << key;
    EXPECT_EQ(measured["predicted"][key], tuned["chosen"]["predicted"][key]) << key;
  }
  EXPECT_THAT(measured["inexact"], IsEmpty());
  EXPECT_EQ(measured["gradients"], "bitwise");

  report({"gate", "--update", "--trace", folder_ / "tuned.json.gz", "--baseline", folder_ / "baseline.json"});
  EXPECT_EQ(
      report({"gate", "--trace", folder_ / "tuned.json.gz", "--baseline", folder_ / "baseline.json"})["ok"],
      true);
}

TEST_F(MainJob, APlanOutlivesANewExportOfTheModel) {
  const auto mlp = [&](const std::string& seed, const std::string& width) {
    const std::string path = folder_ / ("mlp" + seed + ".pt");
    EXPECT_EQ(run_program({"zoo", "make", "mlp", "--seed", seed, "--width", width, "-o", path}).status, 0);
    return path;
  };
  const std::string plan = folder_ / "plan.json";
  report({"run", mlp("0", "64"), "--steps", "1", "-o", folder_ / "trace.json"});
  report({"tune", folder_ / "trace.json", "-o", plan});
  json file = json::parse(content(plan));
  file["policy"] = {{"name", "plan"}, {"threshold_bytes", 0}, {"tensors", {1}}};
  file.erase("fallback");
  std::ofstream(plan) << file;
  const json measured = report({"run", mlp("1", "64"), "--steps", "1", "--policy", plan});
  EXPECT_EQ(measured["policy"]["tensors"], json({1}));
  EXPECT_THAT(measured["inexact"], IsEmpty());

  const Ended refused = run_program({"run", mlp("2", "32"), "--steps", "1", "--policy", plan});
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("of a run with other saved tensors"));
}

TEST_F(MainJob, ASimulationIssuesTheSameCommandsAsTheRun) {
  for (const std::vector<std::string>& policy :
       {std::vector<std::string>{"--policy", "trl"},
        {"--threshold", "64KiB", "--stash", "2", "--prefetch", "1MiB"}}) {
    std::vector<std::string> run_words = {
        "-o", folder_ / "trace.json", "--commands", folder_ / "run.jsonl", "--calibration", "brief"};
    std::vector<std::string> simulate_words = {"simulate", "--trace", folder_ / "trace.json", "--commands",
                                               folder_ / "simulate.jsonl"};
    run_words.insert(run_words.end(), policy.begin(), policy.end());
    simulate_words.insert(simulate_words.end(), policy.begin(), policy.end());
    const json measured = run(run_words)["measured"];
    const json predicted = report(simulate_words)["predicted"];
    for (const char* key : kExactKeys) EXPECT_EQ(measured[key], predicted[key]) << key;
    EXPECT_EQ(content(folder_ / "run.jsonl"), content(folder_ / "simulate.jsonl"));
    EXPECT_THAT(content(folder_ / "run.jsonl"), HasSubstr(R"({"command":"copy_out")"));
  }
}

TEST_F(MainJob, ASimulatedTraceIsMarkedAsSimulated) {
  run({"-o", folder_ / "trace.json", "--calibration", "brief"});
  report(
      {"simulate", "--trace", folder_ / "trace.json", "--policy", "trl", "-o", folder_ / "simulated.json"});
  EXPECT_EQ(json::parse(content(folder_ / "simulated.json"))["simulated"], true);
  EXPECT_THAT(run_program({"view", folder_ / "simulated.json"}).out, HasSubstr("simulated"));
  EXPECT_EQ(run_program({"diff", folder_ / "trace.json", folder_ / "simulated.json"}).status, 0);
}

TEST_F(MainJob, ABriefCalibrationLeavesMemoryExact) {
  const json report = run({"-o", folder_ / "trace.json", "--calibration", "brief"});
  EXPECT_THAT(report["inexact"], IsEmpty());
  const json trace = json::parse(content(folder_ / "trace.json"));
  EXPECT_GT(trace["environment"]["link"]["d2h"]["bytes_per_second"], 0);
}

TEST_F(MainJob, AnUnreachableBudgetExitsWith1AndWritesNothing) {
  run({"-o", folder_ / "trace.json", "--calibration", "brief"});
  const Ended ended = run_program(
      {"tune", "--trace", folder_ / "trace.json", "--memory-budget", "1KiB", "-o", folder_ / "policy.json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_THAT(ended.out, AllOf(HasSubstr("No policy fits into 1.00 KiB"), HasSubstr("The least ")));
  EXPECT_THAT(folder_.files(), ElementsAre("trace.json"));
}

TEST_F(MainJob, AZooModelContainsItsInputSpecs) {
  report({"zoo", "make", "mlp", "-o", folder_ / "mlp.pt", "--batch", "4", "--width", "32"});
  EXPECT_EQ(report({"run", folder_ / "mlp.pt", "--steps", "1"})["gradients"], "bitwise");
}

TEST_F(MainJob, StandardOutputContainsOnlyTheTrace) {
  const Ended ended = run_program({"run", model_path("qwen2.pt"), "--input", "int64[4,96]<512", "--steps",
                                   "1", "--calibration", "brief", "-o", "-"});
  EXPECT_EQ(json::parse(ended.out, nullptr, false)["schema"], "offprof.trace/1");
  EXPECT_THAT(ended.err, HasSubstr("device_peak_bytes"));
}

}  // namespace
}  // namespace offprof
