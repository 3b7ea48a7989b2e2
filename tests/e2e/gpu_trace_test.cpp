// The activity of the GPU itself in the timeline of a run on a virtual GPU, as recorded by its tracer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// number of steps in the timeline of `run`
constexpr int kSteps = 2;

long long in_ns(const json& microseconds) {
  return std::llround(microseconds.get<double>() * 1000);
}
long long begin_of(const json& event) {
  return in_ns(event["ts"]);
}
long long end_of(const json& event) {
  return begin_of(event) + in_ns(event["dur"]);
}

class GpuTrace : public testing::Test {
 protected:
  /// All tests share one run.
  static void SetUpTestSuite() {
    const TestFolder folder;
    ASSERT_EQ(run_program({"zoo", "make", "transformer", "-o", folder / "model.pt"}).status, 0);
    const Ended ended = run_program({"run", folder / "model.pt", "--device", "virtual:h200", "--stash", "2",
                                     "-o", folder / "t.json", "--format", "json"});
    ASSERT_EQ(ended.status, 0) << ended.err;
    report_ = json::parse(ended.out);
    std::ifstream file(folder / "t.json");
    trace_ = json::parse(file);
  }

  static std::vector<json> events(const std::string& key, const std::string& value) {
    std::vector<json> found;
    for (const json& event : trace_["traceEvents"])
      if (event.value(key, "") == value) found.push_back(event);
    return found;
  }
  static std::vector<json> of_category(const std::string& category) { return events("cat", category); }
  /// Returns the copies of saved tensors whose name begins with `way`: `Memcpy DtoH`.
  static std::vector<json> copies(const std::string& way) {
    std::vector<json> found = of_category("gpu_memcpy");
    std::erase_if(found, [&](const json& copy) {
      return !copy["args"].contains("tensor") || !copy["name"].get<std::string>().starts_with(way);
    });
    return found;
  }
  static long long bytes_of(const std::vector<json>& copies) {
    long long bytes = 0;
    for (const json& copy : copies) bytes += copy["args"]["bytes"].get<long long>();
    return bytes;
  }
  /// Returns the GPU's work by stream, in order of start time.
  static std::map<int, std::vector<json>> work_by_stream() {
    std::map<int, std::vector<json>> work;
    for (const char* category : {"kernel", "gpu_memcpy", "gpu_memset"})
      for (const json& event : of_category(category)) work[event["args"]["stream"]].push_back(event);
    for (auto& [stream, events] : work) std::ranges::sort(events, {}, begin_of);
    return work;
  }

  static inline json report_, trace_;
};

TEST_F(GpuTrace, LosesNoRecords) {
  for (const json& note : trace_.value("notes", json::array()))
    EXPECT_THAT(note.get<std::string>(), Not(HasSubstr("traced")));
  const json& tracing = trace_["tracing"];
  EXPECT_EQ(tracing["tool"], "CUPTI");
  for (const char* lost : {"dropped_records", "untimed_records", "unreadable_buffers"})
    EXPECT_EQ(tracing[lost], 0) << lost;
  EXPECT_EQ(report_["tracing"]["host_bytes"], tracing["host_bytes"]);
}

TEST_F(GpuTrace, RecordsEachStepOnTheGpusClock) {
  ASSERT_EQ(trace_["tracing"]["steps"].size(), kSteps);
  for (const json& step : trace_["tracing"]["steps"]) {
    const auto total = step["compute_ns"].get<long long>() + step["exposed_ns"].get<long long>() +
                       step["idle_ns"].get<long long>();
    EXPECT_EQ(total, report_["measured"]["step_time_ns"]);
    EXPECT_EQ(step["d2h"]["bytes"], report_["measured"]["d2h_bytes"]);
    EXPECT_EQ(step["h2d"]["bytes"], report_["measured"]["h2d_bytes"]);
  }
}

TEST_F(GpuTrace, HasTheContextOfTheProfileBesideTheAllocator) {
  const json& beside = trace_["environment"]["beside_allocator"];
  EXPECT_EQ(beside["before_bytes"], 1 << 30);
  EXPECT_EQ(beside["end_bytes"], beside["before_bytes"]);
}

TEST_F(GpuTrace, MeasuresNoCostOrMemoryOfAVirtualGpu) {
  EXPECT_FALSE(trace_["tracing"].contains("cost"));
  EXPECT_FALSE(trace_["tracing"].contains("device_bytes"));
}

TEST_F(GpuTrace, EachKernelHasItsLaunchAndOperator) {
  std::set<json> operators, calls;
  for (const json& op : of_category("cpu_op"))
    if (op.contains("args") && op["args"].contains("External id"))
      operators.insert(op["args"]["External id"]);
  for (const char* category : {"cuda_runtime", "cuda_driver"})
    for (const json& call : of_category(category)) calls.insert(call["args"]["correlation"]);
  const auto kernels = of_category("kernel");
  EXPECT_THAT(kernels, Not(IsEmpty()));
  for (const json& kernel : kernels) {
    EXPECT_TRUE(operators.contains(kernel["args"].value("External id", json()))) << kernel;
    EXPECT_TRUE(calls.contains(kernel["args"]["correlation"])) << kernel;
  }
}

TEST_F(GpuTrace, AKernelRunsWithinItsOperator) {
  std::map<json, json> operators;
  for (const json& op : of_category("cpu_op"))
    if (op.contains("args") && op["args"].contains("External id")) operators[op["args"]["External id"]] = op;
  for (const json& kernel : of_category("kernel")) {
    const json& op = operators[kernel["args"]["External id"]];
    EXPECT_GE(begin_of(kernel), begin_of(op)) << kernel << op;
    EXPECT_LE(end_of(kernel), end_of(op)) << kernel << op;
  }
}

TEST_F(GpuTrace, EachLaunchHasAnArrowToItsKernel) {
  std::map<json, std::vector<std::string>> arrows;
  for (const json& point : of_category("ac2g")) arrows[point["id"]].push_back(point["ph"]);
  for (const json& kernel : of_category("kernel"))
    EXPECT_THAT(arrows[kernel["args"]["correlation"]], ElementsAre("s", "f"));
}

TEST_F(GpuTrace, ContainsTheCopiesThatTheSchedulerRequested) {
  long long offloaded = 0;
  for (const json& row : trace_["ledger"])
    if (row["reason"] == "offloaded") offloaded += row["tensors"].get<long long>();
  const auto out = copies("Memcpy DtoH (Device -> Pinned)"), in = copies("Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(out.size(), static_cast<std::size_t>(kSteps * offloaded));
  EXPECT_EQ(bytes_of(out), kSteps * report_["measured"]["d2h_bytes"].get<long long>());
  EXPECT_EQ(bytes_of(in), kSteps * report_["measured"]["h2d_bytes"].get<long long>());
  EXPECT_GT(bytes_of(in), 0);
  for (const json& copy : out) EXPECT_THAT(copy["args"]["memory bandwidth (GB/s)"].get<double>(), Gt(0));
}

TEST_F(GpuTrace, WorkOfAStreamDoesNotOverlap) {
  for (const auto& [stream, work] : work_by_stream())
    for (std::size_t i = 1; i < work.size(); ++i)
      EXPECT_GE(begin_of(work[i]), end_of(work[i - 1])) << work[i - 1] << work[i];
}

/// The measured compute time has what compute lost by copies too, which no kernel of the timeline shows.
TEST_F(GpuTrace, TheComputeStreamIsBusyForTheMeasuredTime) {
  const int compute = of_category("kernel").front()["args"]["stream"];
  const auto work = work_by_stream()[compute];
  for (int number = 0; number < kSteps; ++number) {
    const json step = events("name", "ProfilerStep#" + std::to_string(number)).front();
    long long busy = 0;
    for (const json& event : work)
      if (begin_of(event) >= begin_of(step) && end_of(event) <= end_of(step)) busy += in_ns(event["dur"]);
    for (const auto& [name, direction] : {std::pair("Memcpy DtoH (Device -> Pinned)", "d2h"),
                                          std::pair("Memcpy HtoD (Pinned -> Device)", "h2d")}) {
      const double loss = trace_["environment"]["link"][direction]["compute_ns_per_byte"];
      EXPECT_GT(loss, 0);
      for (const json& copy : copies(name))
        if (begin_of(copy) >= begin_of(step) && begin_of(copy) <= end_of(step))
          busy += std::llround(loss * copy["args"]["bytes"].get<double>());
    }
    EXPECT_EQ(busy, report_["measured"]["compute_ns"].get<long long>());
  }
}

TEST_F(GpuTrace, EachReloadedTensorHasItsArrows) {
  std::map<json, std::vector<std::string>> chains;
  std::map<std::string, std::set<int>> rows;
  for (const json& point : of_category("offload")) {
    chains[point["id"]].push_back(point["args"]["point"]);
    rows[point["args"]["point"]].insert(point["tid"].get<int>());
  }
  EXPECT_THAT(chains, Not(IsEmpty()));
  for (const auto& [id, points] : chains) {
    EXPECT_EQ(points.front(), "pack");
    EXPECT_THAT(points, Contains("copy out"));
  }
  EXPECT_EQ(rows["copy out"].size(), 1U);
  EXPECT_NE(rows["copy out"], rows["copy in"]);
}

TEST(Doctor, ReportsIfAGpuCanBeTracedAndAFix) {
  const Ended ended = run_program({"doctor", "--format", "json"});
  const json report = json::parse(ended.out);
  const auto finding = std::ranges::find(report["findings"], "GPU tracer",
                                         [](const json& one) { return one["name"].get<std::string>(); });
  ASSERT_NE(finding, report["findings"].end());
  EXPECT_THAT((*finding)["detail"].get<std::string>(), Not(IsEmpty()));
  EXPECT_EQ((*finding)["status"] == "ok", !finding->contains("fix"));
}

}  // namespace
}  // namespace offprof
