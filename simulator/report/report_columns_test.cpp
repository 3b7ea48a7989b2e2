#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/report/report_run.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

using testing::ElementsAre;

/// A trace of a chain of layers under a policy that offloads everything.
Trace chain_trace() {
  Trace trace = sample_trace();
  trace.program = ChainSketch::program(3, 100);
  trace.policy = preset_policy("offload");
  return trace;
}

nlohmann::ordered_json columns_of(const Trace& trace) {
  const TraceSteps steps(trace);
  return to_columns(reduce_trace(trace, steps, kAnyLink));
}

/// Follows the columns as the page does.
Bytes peak_in(const nlohmann::ordered_json& columns) {
  Bytes live = columns["always_live_bytes"], peak = live;
  std::size_t begun = 0;
  for (const int life : columns["changes"]["life"]) {
    const Bytes bytes = columns["lives"]["bytes"][life < 0 ? begun++ : static_cast<std::size_t>(life)];
    live += life < 0 ? bytes : -bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(ReportColumns, ReachTheDevicePeakToTheByte) {
  const auto columns = columns_of(chain_trace());
  EXPECT_EQ(peak_in(columns), columns["predicted"]["device_peak_bytes"]);
}

TEST(ReportColumns, HaveAsManyBeginsAsLives) {
  const auto columns = columns_of(chain_trace());
  const auto& changes = columns["changes"]["life"];
  EXPECT_EQ(std::count(changes.begin(), changes.end(), -1),
            static_cast<std::ptrdiff_t>(columns["lives"]["bytes"].size()));
}

TEST(ReportColumns, StoreTimesAsDifferences) {
  ProgramSketch sketch;
  sketch.compute(5);
  const std::int32_t storage = sketch.alloc(10);
  sketch.compute(7);
  sketch.free(storage);
  Trace trace = sample_trace();
  trace.program = sketch.program();
  const auto columns = columns_of(trace);
  EXPECT_THAT(columns["changes"]["at_ns"].get<std::vector<int>>(), ElementsAre(5, 7));
  EXPECT_THAT(columns["changes"]["life"].get<std::vector<int>>(), ElementsAre(-1, 0));
}

TEST(ReportColumns, HaveTheCopiesAndTheStallsOfTheReplay) {
  const auto columns = columns_of(chain_trace());
  Bytes out = 0;
  Nanoseconds stalls = 0;
  for (std::size_t i = 0; i < columns["copies"]["bytes"].size(); ++i)
    if (columns["copies"]["track"][i] == static_cast<int>(Track::kD2h))
      out += columns["copies"]["bytes"][i].get<Bytes>();
  for (const Nanoseconds duration : columns["stalls"]["duration_ns"]) stalls += duration;
  EXPECT_EQ(out, columns["predicted"]["d2h_bytes"]);
  EXPECT_EQ(stalls, columns["predicted"]["exposed_ns"]);
}

TEST(ReportColumns, DescribeEachSavedTensor) {
  const auto columns = columns_of(sample_trace());
  const auto& saved = columns["saved"];
  EXPECT_EQ(columns["names"][saved["op"][0].get<std::size_t>()], "aten::relu");
  EXPECT_EQ(saved["layout"][0], "float32[32,32]");
  EXPECT_EQ(saved["placement"][0], "host");
  EXPECT_EQ(saved["reason"][0], "offloaded");
  EXPECT_EQ(saved["is_movable"][0], 1);
}

TEST(ReportColumns, SplitTheResidentMemoryByOwner) {
  const auto columns = columns_of(sample_trace());
  EXPECT_EQ(columns["resident_bytes"].dump(), R"({"parameters":48,"buffers":0,"inputs":48,"other":0})");
  EXPECT_EQ(columns["always_live_bytes"], 96);
}

TEST(ReportColumns, CountParametersThatTheStepDoesNotSave) {
  Trace trace = sample_trace();
  trace.program.resident_bytes = 200;
  trace.model.parameter_bytes = 60;
  EXPECT_EQ(columns_of(trace)["resident_bytes"].dump(),
            R"({"parameters":60,"buffers":0,"inputs":48,"other":92})");
}

TEST(ReportColumns, HaveTheReservedMemoryOfACachingAllocator) {
  EXPECT_TRUE(columns_of(sample_trace())["reserved"]["bytes"].empty());
  const auto columns = columns_of(virtual_sample_trace());
  EXPECT_THAT(columns["reserved"]["bytes"].get<std::vector<Bytes>>(), testing::Contains(2 * kMiB));
}

TEST(ReportColumns, MarkTheChosenPolicyOfTheFrontier) {
  TuneResult result;
  result.keep.policy = result.trl.policy = preset_policy("keep");
  result.frontier = {{preset_policy("offload"), {}}, {preset_policy("keep"), {}}};
  result.chosen = result.frontier.front();
  const Trace trace = sample_trace();
  const auto columns = to_columns(result, trace);
  EXPECT_TRUE(columns["points"][0].value("is_chosen", false));
  EXPECT_FALSE(columns["points"][1].contains("is_chosen"));
  const PolicyFile file = parse_policy_file(columns["points"][0]["file"].dump(), "policy.json");
  EXPECT_EQ(file.policy, preset_policy("offload"));
  EXPECT_EQ(file.trace_fingerprint, fingerprint_of_run(trace.model, trace.settings));
  EXPECT_EQ(file.saved_fingerprint, fingerprint_of_saved(trace.program.saved));
}

}  // namespace
}  // namespace offprof
