// Tests of whole runs, from the model file to the report, on a device on which one call fails.
#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <filesystem>
#include <tuple>

#include "engine/models/archives/build.h"
#include "profiler/session/run_job.h"
#include "tests/hazards/fault_fixture.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

/// Run with one of its options.
struct JobCase {
  const char* name;
  void (*ask)(RunRequest&);

  friend std::ostream& operator<<(std::ostream& out, const JobCase& job) { return out << job.name; }
};

void place_all(RunRequest& request, const char* placement) {
  request.policy.threshold_bytes = std::nullopt;
  request.policy.rules.emplace_back().placement = parse_placement(placement);
}

constexpr JobCase kJobs[] = {
    {"Offload", [](RunRequest&) {}},
    {"Trl", [](RunRequest& request) { request.policy = preset_policy("trl"); }},
    {"Disk", [](RunRequest& request) { place_all(request, "disk"); }},
    {"EncodedToHost", [](RunRequest& request) { place_all(request, "identity+host"); }},
    {"Recompute", [](RunRequest& request) { place_all(request, "recompute"); }},
    {"Checkpointing", [](RunRequest& request) { request.settings.checkpointed = {"*"}; }},
    {"Slices",
     [](RunRequest& request) {
       request.settings.slices = SliceSettings{2, 2};
     }},
    {"ParametersOnHost",
     [](RunRequest& request) {
       request.settings.parameters = ParameterSettings{"host", 8 * kKiB};
     }},
    {"ParametersOnDisk",
     [](RunRequest& request) {
       request.settings.parameters = ParameterSettings{"disk", 8 * kKiB};
       request.parameters_folder = std::filesystem::temp_directory_path().string();
     }},
};

class JobFaultTest : public FaultFixture,
                     public testing::WithParamInterface<std::tuple<std::string, JobCase>> {
 protected:
  template <typename Wrapper>
  void prepare() {
    open_faulty<Wrapper>(std::get<0>(GetParam()));
    if (IsSkipped()) return;
    torch::jit::setGraphExecutorOptimize(false);  // as offprof does
    torch::jit::getProfilingMode() = false;
    request_.model_path = folder_ / "model.pt";
    save_zoo_model("mlp", {{"batch", 4}, {"inputs", 12}, {"layers", 1}, {"width", 128}}, /*seed=*/1,
                   request_.model_path, {});
    request_.device = std::get<0>(GetParam());
    request_.policy = preset_policy("offload");
    request_.policy.threshold_bytes = 0;
    request_.settings.optimizer = "adamw";
    request_.settings.steps = 1;
    request_.settings.warmup = 1;
    request_.calibration = CalibrationEffort::kBrief;
    std::get<1>(GetParam()).ask(request_);
  }

  RunResult run() {
    return run_job(request_, device(), [](const std::string&) {});
  }
  void expect_right(const RunResult& result) const {
    EXPECT_EQ(result.trace.gradients, has_values() ? "bitwise" : "not applicable");
    EXPECT_FALSE(result.refusal.has_value());
  }
  /// Makes `runs` runs with one failing call each, between runs without failures. Expects of each the planted
  /// error or a correct result. Returns the number of runs that ended with the error.
  int errors_of_failing_runs(int runs) {
    expect_right(run());
    int errors = 0;
    for_some_calls(
        runs, [&] { expect_right(run()); }, /*and_all_after_it=*/false,
        [&](const std::string& message) {
          expect_planted_failure(message);
          errors += message.empty() ? 0 : 1;
        });
    expect_right(run());
    return errors;
  }

  TestFolder folder_;
  RunRequest request_;
};

TEST_P(JobFaultTest, EndsWithItsErrorOrACorrectResultAndLeavesNothing) {
  constexpr int kRuns = 6;
  prepare<FailingDevice>();
  if (IsSkipped()) return;
  EXPECT_GT(errors_of_failing_runs(kRuns), kRuns / 2);
}

/// The host sets marks until a given time has passed, so the last mark of one run may be missing in the next.
TEST_P(JobFaultTest, AFailedMarkIsTheErrorOfTheRunAndLeavesNothing) {
  constexpr int kRuns = 2;
  prepare<MarkFailingDevice>();
  if (IsSkipped()) return;
  EXPECT_GT(errors_of_failing_runs(kRuns), 0);
}

INSTANTIATE_TEST_SUITE_P(, JobFaultTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()), testing::ValuesIn(kJobs)),
                         [](const auto& test) {
                           return std::string(std::get<1>(test.param).name) + "_" + std::get<0>(test.param);
                         });

}  // namespace
}  // namespace offprof
