#include "cli/tables/tracing_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cli/reports/run_report.h"
#include "cli/reports/view_report.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Trace traced_sample() {
  Trace trace = sample_trace();
  trace.environment.device = "cuda:0";
  trace.environment.link = {{57e9, 3000}, {56e9, 2000}};
  trace.environment.beside_allocator = {400 * kMiB, 500 * kMiB, 501 * kMiB};
  trace.tracing = sample_tracing();
  return trace;
}

std::string line(const Trace& trace, const std::string& label) {
  for (const LabelledLine& line : tracing_lines(trace.tracing, trace.environment))
    if (line.label == label) return line.text;
  return "";
}

std::string run_text(const Trace& trace, std::size_t width) {
  RunReport report;
  report.run = figures_of(trace, "t.json");
  report.gradients = trace.gradients;
  return to_text(report, {.width = width});
}

std::string view_text(const Trace& trace, std::size_t width) {
  return to_text(make_view_report(trace, "t.json", 10), {.width = width});
}

TEST(TracingLines, AnUntracedRunHasNone) {
  EXPECT_THAT(tracing_lines(std::nullopt, sample_trace().environment), IsEmpty());
  EXPECT_THAT(view_text(sample_trace(), 100), Not(HasSubstr("  tracing")));
}

TEST(TracingLines, ReportToolCostLossesAndMemory) {
  Trace trace = traced_sample();
  trace.tracing->cost->untraced = trace.tracing->cost->streams = {1000, 999, 1001};
  trace.tracing->cost->streams.median_ns = 1004;
  trace.tracing->cost->everything = {1012, 1010, 1014};
  EXPECT_EQ(
      line(trace, "tracing"),
      "CUPTI 13.0: +1.2% of a step (CUPTI alone: +0.8%, of kernels and copies only: +0.4%; recorder alone: "
      "+0.5%), 0 records dropped, 128 MiB of host memory, 3.00 MiB of device memory");
}

TEST(TracingLines, ReportVariationAboveTheCostOfTracing) {
  EXPECT_THAT(line(traced_sample(), "tracing"), HasSubstr("recorder alone: +0.5%; steps vary by 2.0%)"));
}

TEST(TracingLines, ReportMissingMeasurements) {
  Trace trace = traced_sample();
  trace.tracing->cost.reset();
  trace.tracing->device_bytes.reset();
  EXPECT_EQ(line(trace, "tracing"),
            "CUPTI 13.0: cost not measured, 0 records dropped, 128 MiB of host memory");
}

TEST(TracingLines, HighlightLostRecords) {
  Trace trace = traced_sample();
  EXPECT_EQ(tracing_lines(trace.tracing, trace.environment)[0].tone, Tone::kPlain);
  trace.tracing->dropped_records = 12;
  const LabelledLine first = tracing_lines(trace.tracing, trace.environment)[0];
  EXPECT_EQ(first.tone, Tone::kBad);
  EXPECT_THAT(first.text, AllOf(HasSubstr("12 records dropped"), EndsWith("GPU activity is incomplete")));
}

TEST(TracingLines, CompareCopySpeedWithTheCalibratedLink) {
  Trace trace = traced_sample();
  EXPECT_EQ(line(trace, "copies"),
            "of 16.0 MiB and more: 55.9 GB/s to host (98% of calibrated), 55.9 GB/s to device (100% of "
            "calibrated)");
  trace.environment.link = {};
  for (GpuFigures& step : trace.tracing->steps) step.d2h = {};
  EXPECT_EQ(line(trace, "copies"), "of 16.0 MiB and more: 55.9 GB/s to device");
  trace.tracing->steps.clear();
  EXPECT_EQ(line(trace, "copies"), "");
}

TEST(TracingLines, ReportMemoryOutsideTheAllocator) {
  EXPECT_EQ(
      line(traced_sample(), "CUDA"),
      "400 MiB of device memory outside PyTorch's allocator at the start, 500 MiB after warm-up, 501 MiB "
      "at the end");
}

TEST(TracingLines, Fit80And120ColumnsInReports) {
  const Trace trace = traced_sample();
  for (const std::size_t width : {80U, 120U}) {
    for (const std::string& text : {run_text(trace, width), view_text(trace, width)}) {
      EXPECT_THAT(text, AllOf(HasSubstr("CUPTI 13.0: +1.2%"), HasSubstr("400 MiB of device memory")));
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(TracingLines, AreBelowTheVerdictsOfARun) {
  EXPECT_THAT(run_text(traced_sample(), 120),
              AllOf(HasSubstr("\ntracing    CUPTI 13.0: "), HasSubstr("\ncopies     of 16.0 MiB and more: "),
                    HasSubstr("\nCUDA       400 MiB of device memory")));
}

TEST(TracingFigures, AreInTheJsonOfBothReports) {
  const Trace trace = traced_sample();
  RunReport run;
  run.run = figures_of(trace, "t.json");
  for (const auto& json : {to_json(run), to_json(make_view_report(trace, "t.json", 10))}) {
    EXPECT_EQ(json["tracing"]["tool"], "CUPTI");
    EXPECT_EQ(json["tracing"]["dropped_records"], 0);
    EXPECT_EQ(json["tracing"]["relative_cost"]["everything"], 0.012);
    EXPECT_EQ(json["tracing"]["relative_cost"]["streams"], 0.004);
    EXPECT_EQ(json["tracing"]["relative_cost"]["tracer"], 0.008);
    EXPECT_EQ(json["tracing"]["relative_cost"]["recorder"], 0.005);
    EXPECT_DOUBLE_EQ(json["tracing"]["d2h_bytes_per_second"].get<double>(), 16.0 * kMiB / 300e-6);
    EXPECT_EQ(json["environment"]["beside_allocator"]["warm_bytes"], 500 * kMiB);
    const StepSummary again = parse_figures(
        [&] {
          auto whole = json;
          whole["schema"] = "offprof.report/1";
          return whole.dump();
        }(),
        "r.json");
    EXPECT_EQ(again.tracing, trace.tracing);
  }
  EXPECT_FALSE(to_json(make_view_report(sample_trace(), "t.json", 10)).contains("tracing"));
}

}  // namespace
}  // namespace offprof
