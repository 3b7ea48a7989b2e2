// `advise`, tested with command lines: what it recommends is run, and measures what it said.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
