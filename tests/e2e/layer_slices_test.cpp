// Training in layer slices (`--slices`), tested with command lines: measured, simulated, and rejected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

class LayerSlices : public testing::Test {
 protected:
  static std::string transformer() {
    return zoo_model("transformer", {"--batch", "4", "--layers", "5", "--seq", "32", "--width", "64"});
  }
  json run(const std::string& model, const std::vector<std::string>& more) const {
    return report_of(joined({"run", model, "--steps", "1", "--calibration", "brief", "-o", trace_}, more));
  }
  /// Returns the bytes of the saved tensors that are not on the device.
  static std::int64_t bytes_moved_by_policy(const json& report) {
    std::int64_t bytes = 0;
    for (const json& row : report["ledger"])
      if (row["placement"] != "device") bytes += row["bytes"].get<std::int64_t>();
    return bytes;
  }
  static std::int64_t peak(const json& report) { return report["measured"]["device_peak_bytes"]; }

  TestFolder folder_, disk_;
  std::string trace_ = folder_ / "trace.json";
};

/// Parameters and activations take four times the device's memory; there is no optimizer state.
TEST_F(LayerSlices, TrainAModelFourTimesAsLargeAsDeviceMemory) {
  const std::vector<std::string> sgd = {"--optimizer", "sgd"};
  const std::string quarter = std::to_string(peak(run(transformer(), joined(sgd, {"--policy", "keep"}))) / 4);
  for (const std::vector<std::string>& where :
       {std::vector<std::string>{}, {"--offload-params", "disk", "--offload-params-dir", disk_.path()}}) {
    const json report = run(
        transformer(), joined({"--optimizer", "sgd", "--slices", "6", "--microbatches", "2", "--threshold",
                               "0", "--offload-params-window", "512KiB", "--device-memory", quarter},
                              where));
    EXPECT_EQ(report["gradients"], "bitwise");
    EXPECT_THAT(report["inexact"], IsEmpty());
    EXPECT_LE(peak(report), std::stoll(quarter));
  }
}

/// Slices with one batch, and with micro-batches and parameters on the device. If the parameters are
/// offloaded, the activations between slices are stored with them, and no tensor is left for a policy to
/// place.
class SlicedPolicies : public LayerSlices, public testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(SlicedPolicies, HaveTheBytesOfTheirSimulation) {
  const std::vector<std::string> slices = joined({"--device", "virtual:h200", "--slices", "3"}, GetParam());
  for (const std::string policy : {"trl", "offload"}) {
    const json report = run(transformer(), joined(slices, {"--policy", policy}));
    const json measured = report["measured"];
    EXPECT_GT(bytes_moved_by_policy(report), 0) << policy;
    run(transformer(), joined(slices, {"--policy", "keep"}));
    const json predicted = report_of({"simulate", "--trace", trace_, "--policy", policy})["predicted"];
    for (const auto& [key, value] : predicted.items()) {
      if (!key.ends_with("_bytes")) continue;
      EXPECT_EQ(value, measured[key]) << policy << " " << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SlicedPolicies,
                         testing::Values(std::vector<std::string>{},
                                         std::vector<std::string>{"--microbatches", "2", "--offload-params",
                                                                  "none"}),
                         [](const auto& test) { return test.param.empty() ? "OneBatch" : "Microbatches"; });

TEST_F(LayerSlices, KeepTheGradientsOfABatchNorm) {
  const json report = run(zoo_model("resnet", {"--batch", "4"}), {"--slices", "auto", "--microbatches", "2"});
  EXPECT_EQ(report["gradients"], "bitwise");
  EXPECT_THAT(report["inexact"], IsEmpty());
}

TEST_F(LayerSlices, KeepTheGradientsOfExportedModels) {
  for (const std::string model : {"qwen2", "shufflenet"}) {
    SCOPED_TRACE(model);
    const json report = run(model_path(model + ".pt"), {"--input", "@" + model_path(model + ".inputs"),
                                                        "--slices", "4", "--microbatches", "2"});
    EXPECT_EQ(report["gradients"], "bitwise");
    EXPECT_THAT(report["inexact"], IsEmpty());
  }
}

TEST_F(LayerSlices, AreNamedInReportsOfSimulations) {
  run(transformer(), {"--device", "virtual:h200", "--slices", "auto"});
  const json slices = report_of({"simulate", "--trace", trace_, "--policy", "trl"})["slices"];
  EXPECT_EQ(slices["microbatches"], 1);
  EXPECT_GT(slices["count"], 1);
  EXPECT_EQ(report_of({"tune", "--trace", trace_})["slices"], slices);
  EXPECT_THAT(run_program({"view", trace_}).out, HasSubstr("slices, 1 micro-batch"));
}

struct Refusal {
  std::vector<std::string> words;
  const char* message;
};
class RefusedSlices : public LayerSlices, public testing::WithParamInterface<Refusal> {};

TEST_P(RefusedSlices, ReportTheReasonBeforeAnythingIsWritten) {
  const Ended ended = run_program(joined({"run", transformer(), "-o", trace_}, GetParam().words));
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr(GetParam().message));
  EXPECT_THAT(folder_.files(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedSlices,
    testing::Values(Refusal{{"--slices", "0"},
                            "--slices: '0' is neither auto nor a whole number from 1 to 100000"},
                    Refusal{{"--slices", "5000"}, "--slices 5000: the model can be cut into"},
                    Refusal{{"--slices", "2", "--microbatches", "3"},
                            "3 micro-batches do not evenly divide the batch of 4"},
                    Refusal{{"--microbatches", "2"}, "--microbatches needs --slices"},
                    Refusal{{"--slices", "2", "--checkpoint", "*"}, "give only one of them"}));

}  // namespace
}  // namespace offprof
