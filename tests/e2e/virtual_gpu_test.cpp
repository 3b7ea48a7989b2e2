// Whole command lines on a virtual GPU: exact memory, no tensor values, modelled times.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
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
using testing::Not;

constexpr const char* kMemoryKeys[] = {"device_peak_bytes", "device_allocated_peak_bytes",
                                       "device_reserved_peak_bytes", "host_peak_bytes"};

constexpr const char* kTimeKeys[] = {"step_time_ns", "compute_ns", "d2h_busy_ns", "h2d_busy_ns",
                                     "exposed_ns"};

class VirtualGpuRun : public testing::Test {
 protected:
  std::vector<std::string> run_of_qwen(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "run",      model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--steps", "2",
        "--device", "virtual:h200"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  json report(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return json::parse(ended.out, nullptr, false);
  }
  void expect_refused(int status, const std::string& what, const std::vector<std::string>& arguments) {
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, status) << ended.out;
    EXPECT_THAT(unwrapped(ended.err), HasSubstr(what));
    EXPECT_THAT(ended.out, IsEmpty());
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  TestFolder folder_;
};

TEST_F(VirtualGpuRun, ATraceWithoutATimelinePredictsTheSame) {
  const std::string with = folder_ / "with.json", without = folder_ / "without.json";
  const json measured = report(run_of_qwen({"--policy", "keep", "-o", with}))["measured"];
  EXPECT_EQ(report(run_of_qwen({"--policy", "keep", "--no-timeline", "-o", without}))["measured"], measured);
  const auto has_spans = [](const std::string& trace) {
    const json events = json::parse(std::ifstream(trace))["traceEvents"];
    return std::ranges::any_of(events, [](const json& event) { return event["ph"] == "X"; });
  };
  EXPECT_TRUE(has_spans(with));
  EXPECT_FALSE(has_spans(without));
  const auto predicted = [&](const std::string& trace) {
    return report({"simulate", trace, "--threshold", "20000", "--stash", "3"})["predicted"];
  };
  EXPECT_EQ(predicted(without), predicted(with));
}

TEST_F(VirtualGpuRun, DiffFindsNoDifferenceInTimeFromTheSimulation) {
  const std::string trace = folder_ / "t.json", simulated = folder_ / "s.json";
  report(run_of_qwen({"--threshold", "20000", "--stash", "3", "-o", trace}));
  report({"simulate", "--trace", trace, "--threshold", "20000", "--stash", "3", "-o", simulated});
  const json timeline = report({"diff", trace, simulated})["timeline"];
  EXPECT_EQ(timeline["step"]["difference_ns"], 0);
  EXPECT_GT(timeline["waits"]["base_ns"], 0);
  EXPECT_EQ(timeline["waits"]["difference_ns"], 0);
  EXPECT_THAT(timeline["by_wait"], IsEmpty());
  EXPECT_EQ(timeline["copies"].size(), 2U);
  for (const json& copies : timeline["copies"]) EXPECT_EQ(copies["busy"]["difference_ns"], 0) << copies;
}

TEST_F(VirtualGpuRun, IsReplayedExactlyWithoutStreamRaces) {
  const json run = report(run_of_qwen({"--check-streams"}));
  EXPECT_THAT(run["inexact"], IsEmpty());
  EXPECT_THAT(run["stream_hazards"], IsEmpty());
  EXPECT_EQ(run["gradients"], "not applicable");
  EXPECT_EQ(run["environment"]["times_are_modelled"], true);
}

TEST_F(VirtualGpuRun, ATraceOfOnePolicySimulatesAnother) {
  report(run_of_qwen({"-o", folder_ / "trace.json"}));
  const std::vector<std::string> policy = {"--threshold", "20000", "--stash", "3"};
  std::vector<std::string> simulation = {"simulate", "--trace", folder_ / "trace.json"};
  simulation.insert(simulation.end(), policy.begin(), policy.end());
  const json simulated = report(simulation)["predicted"];
  const json measured = report(run_of_qwen(policy))["measured"];
  for (const char* key : kMemoryKeys) EXPECT_EQ(simulated[key], measured[key]) << key;
  for (const char* key : kTimeKeys) EXPECT_EQ(simulated[key], measured[key]) << key;
}

/// Writes a model that holds this many bytes while it computes.
std::string write_model_that_holds(int bytes, const std::string& path) {
  return write_model(
      "def forward(self, x):\n"
      "    held = torch.zeros([" +
          std::to_string(bytes) +
          "], dtype=11, device=x.device)\n"  // 11: bool
          "    return (self.w * x).exp().sum() + held[0]\n",
      path);
}

TEST_F(VirtualGpuRun, RejectsAModelWhoseShapesDependOnValues) {
  const std::pair<std::string, std::string> models[] = {
      {"(self.w * x)[x > 0].exp().sum()", "aten::nonzero"},
      {"(self.w * x).masked_select(x > 0).exp().sum()", "aten::masked_select"},
      {"(self.w * torch.unique_consecutive(x)[0].sum()).exp().sum()", "aten::unique_consecutive"}};
  for (const auto& [loss, op] : models) {
    const std::string model =
        write_model("def forward(self, x):\n    return " + loss + "\n", folder_ / "model.pt");
    expect_refused(2, op, {"run", model, "--input", "float32[16]", "--device", "virtual"});
  }
}

TEST_F(VirtualGpuRun, RejectsAModelWhoseShapesDependOnValuesAfterTheFirstStep) {
  const std::string model = write_model("def forward(self, x):\n    return (self.w * x)[x > 0].exp().sum()\n",
                                        folder_ / "model.pt");
  const Ended ended = run_program({"run", model, "--input", "float32[16]", "--device", "virtual", "-v"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("warming up"), Not(HasSubstr("recording"))));
}

TEST_F(VirtualGpuRun, MarksMemoryIfTheModelReadsValues) {
  const std::string model = write_model(
      "def forward(self, x):\n"
      "    y = self.w * x\n"
      "    if bool(x.sum() > 0):\n"
      "        y = y.exp()\n"
      "    return y.sum()\n",
      folder_ / "model.pt");
  const Ended ended = run_program({"run", model, "--input", "float32[16]", "--device", "virtual"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("aten::_local_scalar_dense"));
  EXPECT_THAT(unwrapped(ended.out), HasSubstr("prediction exact to the byte for a step that read zeros"));
}

TEST_F(VirtualGpuRun, AGateFailsOnOneMoreByteAtThePeak) {
  const auto trace = [&](const std::string& model) {
    report(
        {"run", model, "--input", "float32[16]", "--device", "virtual:h200", "-o", folder_ / "trace.json"});
  };
  const std::vector<std::string> gate = {"gate", "--trace", folder_ / "trace.json", "--baseline",
                                         folder_ / "baseline.json"};
  trace(write_model_that_holds(1'000'000, folder_ / "model.pt"));
  report({"gate", "--update", "--trace", folder_ / "trace.json", "--baseline", folder_ / "baseline.json"});
  EXPECT_EQ(report(gate)["ok"], true);
  trace(write_model_that_holds(1'000'001, folder_ / "model.pt"));
  const Ended ended = run_program(gate);
  EXPECT_EQ(ended.status, 1) << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("+1 B"));
}

TEST_F(VirtualGpuRun, NamesTheFileOfItsKernelTimes) {
  const std::string times = write("times.json", R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k",
      "ts": 5, "dur": 12.5, "args": {"correlation": 1, "grid": [8, 1, 1], "block": [128, 1, 1]}}]})");
  EXPECT_EQ(report(run_of_qwen({"--kernel-times", times}))["environment"]["kernel_times"], "times.json");
}

TEST_F(VirtualGpuRun, TrainsAModelOfSevenBillionMetaParameters) {
  ASSERT_EQ(run_program({"zoo", "make", "llama", "--preset", "7b", "--dtype", "bfloat16", "--meta", "-o",
                         folder_ / "7b.pt"})
                .status,
            0);
  const json run =
      report({"run", folder_ / "7b.pt", "--device", "virtual:h200", "--optimizer", "sgd", "--steps", "1"});
  EXPECT_THAT(run["inexact"], IsEmpty());
  EXPECT_GT(run["measured"]["device_resident_bytes"].get<long>(), 13'000'000'000);
}

// CUB's sorts require code for the card's architecture. LibTorch has none for 8.9; a card of that
// architecture runs the code for 8.6.
TEST_F(VirtualGpuRun, SortsOnACardThatRunsCodeForAnotherArchitecture) {
  ASSERT_EQ(run_program({"zoo", "make", "moe", "-o", folder_ / "moe.pt"}).status, 0);
  const json run =
      report({"run", folder_ / "moe.pt", "--device", "virtual:l4", "--steps", "1", "--check-streams"});
  EXPECT_THAT(run["inexact"], IsEmpty());
  EXPECT_THAT(run["stream_hazards"], IsEmpty());
}

TEST_F(VirtualGpuRun, RejectsACardForWhichLibTorchHasNoCode) {
  std::ifstream file(OFFPROF_PROFILES "/l4.json");
  json profile = json::parse(file);
  profile["multiprocessors"]["compute_capability_major"] = 7;
  profile["multiprocessors"]["compute_capability_minor"] = 0;
  const std::string path = write("volta.json", profile.dump());
  expect_refused(2, "has compute capability 7.0, but this LibTorch has code only for 7.5, 8.0",
                 {"run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--device",
                  "virtual:" + path});
}

class KernelTimesRun : public VirtualGpuRun {
 protected:
  /// Returns the output of a run whose kernel times come from a recording of one kernel.
  std::string said_of(const std::string& kernel) {
    const std::string times =
        write("times.json", R"([{"cat": "kernel", "name": ")" + kernel +
                                R"(", "dur": 5, "args": {"grid": [1, 1, 1], "block": [1, 1, 1]}}])");
    const Ended ended = run_program(run_of_qwen({"--kernel-times", times}));
    EXPECT_EQ(ended.status, 0) << ended.err;
    return unwrapped(ended.err);
  }
};

TEST_F(KernelTimesRun, ReportsTheNumberOfMatchingLaunches) {
  EXPECT_THAT(
      said_of(keeps_cublas_workspaces() ? "cublasSgemm_v2" : "cublasGemmEx"),
      testing::ContainsRegex("kernel times: ([1-9][0-9]*) of [0-9]+ launches recorded \\(0 by operator"));
}

TEST_F(KernelTimesRun, ReportsThatNoLaunchMatches) {
  EXPECT_THAT(said_of("gelu"), HasSubstr("kernel times: no recorded time matches this run"));
}

TEST_F(VirtualGpuRun, AnOutOfMemoryErrorShowsTheContentsAndAPolicyThatFits) {
  const std::string capacity = std::to_string(capacity_below_keep(run_of_qwen({})));
  const Ended ended = run_program(run_of_qwen({"--policy", "keep", "--device-memory", capacity}));
  EXPECT_EQ(ended.status, 3) << ended.out;
  const std::string text = unwrapped(ended.err);
  EXPECT_THAT(text, HasSubstr("out of device memory"));
  EXPECT_THAT(text, HasSubstr("saved tensors kept on the device"));
  EXPECT_THAT(text, HasSubstr("offprof tune found a policy that fits, with steps of "));
}

TEST_F(VirtualGpuRun, AnUnknownProfileListsTheKnownOnes) {
  expect_refused(2, "a100-40gb", {"run", "model.pt", "--device", "virtual:h2000"});
}

TEST_F(VirtualGpuRun, ABrokenProfileNamesTheKeyAndTheLine) {
  const std::string profile =
      write("gpu.json", "{\n  \"schema\": \"offprof.gpu_profile/1\",\n  \"nam\": 1\n}\n");
  expect_refused(2, "line 3", {"run", "model.pt", "--device", "virtual:" + profile});
}

TEST_F(VirtualGpuRun, RejectsFlagsOfAVirtualGpuOnOtherDevices) {
  expect_refused(2, "Add --device virtual", {"run", "model.pt", "--device", "host", "--check-streams"});
}

}  // namespace
}  // namespace offprof
