// Parameter offload (`--offload-params`), tested with command lines: measured, simulated, and rejected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Parameters : public testing::Test {
 protected:
  static std::string transformer() {
    return zoo_model("transformer", {"--batch", "4", "--layers", "5", "--seq", "32", "--width", "64"});
  }

  json run(const std::vector<std::string>& more) const {
    return report_of(
        joined({"run", transformer(), "--steps", "1", "--calibration", "brief", "-o", folder_ / "trace.json"},
               more));
  }

  static std::int64_t peak(const json& report) { return report["measured"]["device_peak_bytes"]; }

  TestFolder folder_, disk_;
};

TEST_F(Parameters, ArePredictedExactlyOnTheHost) {
  const json report = run({"--offload-params", "host"});
  EXPECT_EQ(report["gradients"], "bitwise");
  EXPECT_EQ(report["inexact"], json::array());
  const json again = run({});
  EXPECT_LT(peak(report), peak(again));
  EXPECT_GT(report["measured"]["h2d_bytes"], again["measured"]["h2d_bytes"]);
}

TEST_F(Parameters, LeaveNoFileOnTheDisk) {
  const json report = run({"--offload-params", "disk", "--offload-params-dir", disk_.path()});
  EXPECT_EQ(report["gradients"], "bitwise");
  EXPECT_EQ(report["inexact"], json::array());
  EXPECT_TRUE(std::filesystem::is_empty(disk_.path()));
}

TEST_F(Parameters, ArePredictedToTheByteAndTheNanosecondOnAVirtualGpu) {
  const json report = run({"--offload-params", "host", "--device", "virtual:h200", "--check-streams"});
  EXPECT_EQ(report["inexact"], json::array());
  EXPECT_EQ(report["stream_hazards"], json::array());
  EXPECT_EQ(report["measured"]["step_time_ns"], report["replayed"]["step_time_ns"]);
}

/// Parameters and activations take four times the device's memory; there is no optimizer state.
TEST_F(Parameters, TrainAModelFourTimesAsLargeAsDeviceMemory) {
  const std::vector<std::string> sgd = {"--optimizer", "sgd"};
  const std::string quarter = std::to_string(peak(run(joined(sgd, {"--policy", "keep"}))) / 4);
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{"--offload-params", "host"},
        {"--offload-params", "disk", "--offload-params-dir", disk_.path()}}) {
    std::vector<std::string> arguments = {"--device-memory", quarter, "--policy", "offload"};
    arguments.insert(arguments.end(), where.begin(), where.end());
    const json report = run(joined(sgd, arguments));
    EXPECT_EQ(report["gradients"], "bitwise");
    EXPECT_LE(peak(report), std::stoll(quarter));
  }
}

TEST_F(Parameters, ALargerWindowKeepsMoreOfThemOnTheDevice) {
  const json small = run({"--offload-params", "host", "--offload-params-window", "0"});
  const json large = run({"--offload-params", "host", "--offload-params-window", "64MiB"});
  EXPECT_LT(peak(small), peak(large));
  EXPECT_GT(small["measured"]["h2d_bytes"], large["measured"]["h2d_bytes"]);
  EXPECT_EQ(small["inexact"], json::array());
  EXPECT_EQ(large["inexact"], json::array());
}

TEST_F(Parameters, TheirTraceCanBeSimulatedUnderAnyPolicy) {
  run({"--offload-params", "host"});
  for (const std::string policy : {"keep", "trl"}) {
    const Ended simulated =
        run_program({"simulate", "--trace", folder_ / "trace.json", "--policy", policy, "--format", "json"});
    ASSERT_EQ(simulated.status, 0) << simulated.err;
    const json predicted = json::parse(simulated.out)["predicted"];
    const json measured = run({"--offload-params", "host", "--policy", policy})["measured"];
    for (const char* key : {"device_peak_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes"})
      EXPECT_EQ(predicted[key], measured[key]) << policy << " " << key;
  }
}

/// On a virtual GPU, whose disk speed is given, bytes and times are exact, times to the nanosecond.
TEST_F(Parameters, TheirTraceCanBeSimulatedUnderAnyPolicyOnAGpusDisk) {
  const std::vector<std::string> on_disk = {"--device",         "virtual:h200", "--link",           "2GB/s",
                                            "--offload-params", "disk",         "--disk-bandwidth", "1GB/s"};
  const auto run_under = [&](const std::string& policy) {
    std::vector<std::string> arguments = on_disk;
    arguments.insert(arguments.end(), {"--policy", policy});
    return run(arguments)["measured"];
  };
  run_under("offload");
  std::map<std::string, json> predicted;
  for (const std::string policy : {"keep", "offload"}) {
    const Ended simulated =
        run_program({"simulate", "--trace", folder_ / "trace.json", "--policy", policy, "--format", "json"});
    ASSERT_EQ(simulated.status, 0) << simulated.err;
    predicted[policy] = json::parse(simulated.out)["predicted"];
  }
  for (const auto& [policy, expected] : predicted) {
    const json measured = run_under(policy);
    for (const char* key : {"device_peak_bytes", "host_peak_bytes", "d2h_bytes", "h2d_bytes",
                            "disk_write_bytes", "disk_read_bytes", "step_time_ns", "exposed_ns"})
      EXPECT_EQ(expected[key], measured[key]) << policy << " " << key;
    EXPECT_GT(measured["disk_read_bytes"], 0);
  }
}

struct Refusal {
  std::vector<std::string> arguments;
  const char* message;
};
class RefusedWeights : public Parameters, public testing::WithParamInterface<Refusal> {};

TEST_P(RefusedWeights, ReportTheReason) {
  std::vector<std::string> arguments = {"run", transformer(), "-o", folder_ / "trace.json"};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Ended ended = run_program(arguments);
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr(GetParam().message));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "trace.json"));
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedWeights,
    testing::Values(
        Refusal{{"--offload-params", "disk"}, "--offload-params-dir"},
        Refusal{{"--offload-params", "host", "--offload-params-dir", "/tmp"}, "--offload-params-dir needs"},
        Refusal{{"--offload-params-window", "1MiB"}, "--offload-params-window needs"},
        Refusal{{"--offload-params", "cloud"}, "cloud"},
        Refusal{{"--offload-params", "disk", "--offload-params-dir", "/nonexistent"}, "/nonexistent"},
        Refusal{{"--offload-params", "disk", "--offload-params-dir", "/proc"}, "/proc"},
        Refusal{{"--offload-params", "disk", "--offload-params-dir", "/tmp", "--device", "virtual:h200"},
                "Give --disk-bandwidth 2GB/s instead of --offload-params-dir"},
        Refusal{{"--offload-params", "disk", "--device", "virtual:h200"}, "its speed is unknown"}));

}  // namespace
}  // namespace offprof
