// Memory that an NVIDIA H200 and an H100 measured (traces/recorded), simulated from its traces and on a
// virtual H200.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"
#include "traces/format/trace_io.h"
#include "traces/model/metrics.h"

namespace offprof {
namespace {

using nlohmann::json;

/// Returns the names of the traces, such as `h200/mlp_offload`.
std::vector<std::string> recorded_traces() {
  std::vector<std::string> names;
  for (const std::string card : {"h100", "h200"})
    for (const auto& entry : std::filesystem::directory_iterator(std::string(OFFPROF_RECORDED) + "/" + card))
      if (entry.path().string().ends_with(".json.gz") && entry.path().stem().stem() != "kernels")
        names.push_back(card + "/" + entry.path().stem().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string path_of(const std::string& name) {
  return std::string(OFFPROF_RECORDED) + "/" + name + ".json.gz";
}

class RecordedTest : public testing::TestWithParam<std::string> {};

TEST_P(RecordedTest, TheMeasuredMemoryIsSimulatedToTheByte) {
  const Trace trace = read_trace(path_of(GetParam()));
  ASSERT_FALSE(trace.environment.times_are_modelled);
  const json predicted =
      report_of({"simulate", path_of(GetParam()), "--policy", trace.policy.name})["predicted"];
  int compared = 0;
  for (const MetricKey& key : metric_keys()) {
    const auto measured = key.get(trace.metrics);
    if (key.unit != MetricUnit::kBytes || !key.is_predicted || !measured) continue;
    EXPECT_EQ(predicted[std::string(key.name)].get<double>(), *measured) << key.name;
    ++compared;
  }
  EXPECT_GE(compared, 6);
}

INSTANTIATE_TEST_SUITE_P(Gpu, RecordedTest, testing::ValuesIn(recorded_traces()), [](const auto& instance) {
  std::string name = instance.param;
  std::ranges::replace(name, '/', '_');
  return name;
});

/// Runs a model of the zoo on a virtual H200, and compares memory with that of the real one.
void expect_memory_of(const std::string& recorded, const std::vector<std::string>& zoo_arguments) {
  const TestFolder folder;
  const std::string model = folder / "model.pt";
  std::vector<std::string> make = {"zoo", "make", "-o", model, "--meta"};
  make.insert(make.end(), zoo_arguments.begin(), zoo_arguments.end());
  ASSERT_EQ(run_program(make).status, 0);
  const Trace trace = read_trace(path_of(recorded));
  const json run = report_of({"run", model, "--device", "virtual:h200", "--policy", trace.policy.name});
  if (run["environment"]["torch_version"] != trace.environment.torch_version)
    GTEST_SKIP() << "the real one was measured with LibTorch " << trace.environment.torch_version;
  const json& measured = run["measured"];
  EXPECT_EQ(measured["device_peak_bytes"], trace.metrics.device_peak_bytes);
  EXPECT_EQ(measured["device_allocated_peak_bytes"], trace.metrics.device_allocated_peak_bytes);
  EXPECT_EQ(measured["device_reserved_peak_bytes"], trace.metrics.device_reserved_peak_bytes);
  EXPECT_EQ(measured["host_peak_bytes"], trace.metrics.host_peak_bytes);
}

TEST(VirtualH200, HasTheMemoryOfARealOne) {
  expect_memory_of("h200/transformer_keep", {"transformer", "--batch", "8", "--seq", "1024", "--layers", "8",
                                             "--width", "1024", "--heads", "16"});
  expect_memory_of("h200/small_transformer_keep", {"transformer", "--batch", "2", "--layers", "2"});
  expect_memory_of("h200/mlp_offload", {"mlp"});
  // Its reserved memory depends on the order of addresses.
  expect_memory_of("h200/llama_offload",
                   {"llama", "--batch", "4", "--seq", "1024", "--layers", "8", "--width", "1024", "--heads",
                    "16", "--kv-heads", "4", "--ffn", "2752"});
}

}  // namespace
}  // namespace offprof
