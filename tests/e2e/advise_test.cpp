// `advise`, tested with command lines: what it recommends is run, and measures what it said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::string transformer() {
  return zoo_model("transformer",
                   {"--batch", "8", "--layers", "4", "--seq", "128", "--width", "128", "--meta"});
}

TEST(Advise, RecommendsWhatARunMeasures) {
  const TestFolder folder;
  const std::string policy = folder / "policy.json";
  const std::vector<std::string> device = {"--device", "virtual:h200"};
  const json plain = report_of(joined({"run", transformer()}, device));
  const Bytes taken = plain["measured"]["device_reserved_peak_bytes"];
  const Ended ended =
      run_program(joined({"advise", transformer(), "--memory-budget", std::to_string(taken * 3 / 4) + "B",
                          "-o", policy, "--format", "json"},
                         device));
  ASSERT_EQ(ended.status, 0) << ended.out << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  const json advice = json::parse(ended.out);
  EXPECT_EQ(advice["nothing"]["predicted"]["device_reserved_peak_bytes"], taken);
  EXPECT_EQ(advice["nothing"]["predicted"]["step_time_ns"], plain["measured"]["step_time_ns"]);

  if (advice["recommended"]["expandable_segments"].get<bool>())
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
  const json run = report_of(advice["run"]);
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  const json& recommended = advice["recommended"];
  for (const char* key : {"device_reserved_peak_bytes", "device_peak_bytes", "step_time_ns"}) {
    EXPECT_EQ(run["measured"][key], recommended["measured"][key]) << key;
    EXPECT_EQ(run["measured"][key], recommended["predicted"][key]) << key;
  }
  EXPECT_LE(run["measured"]["device_reserved_peak_bytes"].get<Bytes>(), taken * 3 / 4);
}

/// Returns the memory that a run of the transformer with this batch takes, with nothing done.
Bytes taken_by_batch(std::int64_t batch) {
  const std::string input = "int64[" + std::to_string(batch) + ",128]<512";
  return report_of({"run", transformer(), "--device", "virtual:h200", "--input",
                    input})["measured"]["device_reserved_peak_bytes"];
}

TEST(Advise, FindsTheLargestBatchThatFits) {
  const TestFolder folder;
  const Bytes budget = taken_by_batch(20);
  const Ended ended =
      run_program({"advise", transformer(), "--device", "virtual:h200", "--goal", "batch", "--memory-budget",
                   std::to_string(budget) + "B", "-o", folder / "policy.json", "--format", "json"});
  ASSERT_EQ(ended.status, 0) << ended.out << ended.err;
  const json advice = json::parse(ended.out);
  EXPECT_EQ(advice["present"], 8);
  std::int64_t plain = 0;
  for (const json& way : advice["ways"])
    if (way["name"] == "keep everything") plain = way["size"];
  EXPECT_GE(plain, 20);
  EXPECT_LE(taken_by_batch(plain), budget);
  EXPECT_GT(taken_by_batch(plain + 1), budget);

  const json& best = advice["ways"][0];
  EXPECT_GT(best["size"], plain);
  if (best["expandable_segments"].get<bool>())
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
  const json run = report_of(advice["run"]);
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_EQ(run["measured"]["device_reserved_peak_bytes"], best["predicted"]["device_reserved_peak_bytes"]);
  EXPECT_EQ(run["measured"]["step_time_ns"], best["predicted"]["step_time_ns"]);
  EXPECT_LE(run["measured"]["device_reserved_peak_bytes"].get<Bytes>(), budget);
}

TEST(Advise, SaysWhatWouldFitIfNothingDoes) {
  const Ended ended = run_program({"advise", transformer(), "--device", "virtual:h200", "--memory-budget",
                                   "8MiB", "--optimizer", "adamw:state=fp32", "--format", "json"});
  ASSERT_EQ(ended.status, 1) << ended.out << ended.err;
  const json floor = json::parse(ended.out)["floor"];
  EXPECT_EQ(floor["optimizer_bytes"], 2 * floor["parameter_bytes"].get<Bytes>());
  EXPECT_EQ(floor["gradient_bytes"], floor["parameter_bytes"]);
  EXPECT_EQ(floor["workspace_bytes"] > 0, keeps_cublas_workspaces());
  EXPECT_THAT(floor["remedies"], testing::Not(IsEmpty()));
}

TEST(Advise, EndsWithTheStatusOfItsInterruption) {
  OffprofProcess process({"advise", transformer(), "--memory-budget", "1GiB", "-v", "-o", "unwritten.json"});
  process.wait_for_error_text("recording");
  process.send(SIGINT);
  EXPECT_EQ(process.finish().status, 130);
  EXPECT_FALSE(std::filesystem::exists("unwritten.json"));
}

TEST(Advise, GivesTheErrorOfTheRecordingIfTheStepCannotBeRecorded) {
  const Ended ended =
      run_program({"advise", transformer(), "--input", "int64[4,4]", "--input", "int64[4,4]"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("error: the step cannot be recorded: "));
}

TEST(Advise, PassesTheOptionsOfScriptsOn) {
  const TestFolder folder;
  std::ofstream(folder / "train.py") << "pass\n";
  const Ended ended = run_program({"advise", folder / "train.py", "--python", "/no/such/python"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("/no/such/python"));
}

}  // namespace
}  // namespace offprof
