#include "cli/reports/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/devices/virtual_gpu/value_reads.h"
#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

TEST(RunReport, JsonHasTheWarningsAboutTimes) {
  const Trace trace = sample_trace();
  RunReport report;
  report.run = figures_of(trace, "t.json");
  EXPECT_FALSE(to_json(report).contains("warnings"));
  report.warnings = {"predicted times mean little"};
  EXPECT_EQ(to_json(report)["warnings"][0], "predicted times mean little");
}

TEST(RunReport, TheRangeOfAModelledTimeIsInBothFormats) {
  const Trace trace = virtual_sample_trace();
  RunReport report;
  report.run = figures_of(trace, "t.json");
  EXPECT_FALSE(to_json(report).contains("step_time_range_ns"));
  report.step_range = {8000, 12'000};
  EXPECT_EQ(to_json(report)["step_time_range_ns"], nlohmann::ordered_json({{"low", 8000}, {"high", 12'000}}));
  EXPECT_THAT(to_text(report, {}), testing::HasSubstr("step 9.30 us (8.00 to 12.0)"));
}

TEST(RunReport, TheNextCommandRepeatsThisOneIfNoTraceFileIsWritten) {
  RunReport report;
  const Trace trace = sample_trace();
  report.run = figures_of(trace, "");
  report.argv = {"offprof", "run", "m.pt", "--device", "virtual:h200", "-o", "-"};
  report.trace_path = "-";
  EXPECT_THAT(to_text(report, {}),
              testing::HasSubstr("Next: offprof run m.pt --device virtual:h200 -o trace.json\n"));
}

TEST(RunReport, ComparesMemoryThatAReplayPredicts) {
  Metrics measured, predicted;
  measured.host_peak_bytes = 5;
  measured.host_reserved_bytes = 8;
  predicted.host_peak_bytes = 5;
  EXPECT_THAT(inexact_keys(measured, predicted), testing::IsEmpty());
  predicted.host_peak_bytes = 6;
  EXPECT_THAT(inexact_keys(measured, predicted), testing::ElementsAre("host_peak_bytes"));
  predicted.host_peak_bytes = std::nullopt;
  EXPECT_THAT(inexact_keys(measured, predicted), testing::ElementsAre("host_peak_bytes"));
}

TEST(RunReport, MarksMemoryPredictionsOfAStepThatReadsValues) {
  RunReport report;
  const Trace trace = sample_trace();
  report.run = figures_of(trace, "");
  EXPECT_THAT(to_text(report, {}), testing::HasSubstr("memory     prediction exact to the byte\n"));
  report.notes = {std::string(kValueReadsNote) + " (aten::_local_scalar_dense): they are zeros"};
  EXPECT_THAT(to_text(report, {}),
              testing::HasSubstr("memory     prediction exact to the byte for a step that read"));
}

}  // namespace
}  // namespace offprof
