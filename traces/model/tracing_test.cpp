#include "traces/model/tracing.h"

#include <gmock/gmock.h>

#include "tests/support/sample_trace.h"
#include "traces/analysis/baselines.h"
#include "traces/analysis/figures.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"
#include "traces/format/tracing_io.h"

namespace offprof {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json written() {
  return json::parse(to_json(sample_tracing()).dump());
}

TEST(TracingJson, ReadsBackWhatItWrote) {
  const json document = written();
  EXPECT_EQ(tracing_from_json(JsonValue(document, "t.json: ")), sample_tracing());
}

TEST(TracingJson, LeavesOutFiguresThatWereNotMeasured) {
  Tracing tracing = sample_tracing();
  tracing.cost.reset();
  tracing.device_bytes.reset();
  tracing.steps.clear();
  const json document = json::parse(to_json(tracing).dump());
  EXPECT_FALSE(document.contains("cost"));
  EXPECT_FALSE(document.contains("device_bytes"));
  EXPECT_EQ(tracing_from_json(JsonValue(document, "t.json: ")), tracing);
}

/// Returns the error of reading the sample with one value changed.
std::string error_with(const std::string& pointer, const json& value) {
  json document = written();
  document[json::json_pointer(pointer)] = value;
  try {
    tracing_from_json(JsonValue(document, "t.json: "));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TracingJson, RejectsImpossibleValuesWithTheirPlace) {
  EXPECT_EQ(error_with("/dropped_records", -1), "t.json: dropped_records: -1 is negative");
  EXPECT_THAT(error_with("/unreadable_buffers", "none"), HasSubstr("t.json: unreadable_buffers: "));
  EXPECT_THAT(error_with("/untimed_records", nullptr), HasSubstr("'untimed_records' is missing"));
  EXPECT_THAT(error_with("/host_bytes", 1e300), HasSubstr("t.json: host_bytes: "));
  EXPECT_THAT(error_with("/device_bytes", -5), HasSubstr("t.json: device_bytes: -5 is negative"));
  EXPECT_THAT(error_with("/cost/streams/low_ns", 2000), HasSubstr("cost.streams.median_ns: 1004 is not"));
  EXPECT_THAT(error_with("/cost/everything", nullptr), HasSubstr("cost: 'everything' is missing"));
  EXPECT_THAT(error_with("/steps/1/h2d/busy_ns", -3), HasSubstr("steps[1].h2d.busy_ns: -3 is negative"));
  EXPECT_THAT(error_with("/steps/0/idle_ns", 9'000'000'000'000'000'000), HasSubstr("steps[0].idle_ns: "));
  EXPECT_THAT(error_with("/steps/0/d2h/large_bytes", 0.5), HasSubstr("steps[0].d2h.large_bytes: 0.5 is"));
  EXPECT_THAT(error_with("/steps", 7), HasSubstr("t.json: steps: "));
}

TEST(TracingJson, IsPartOfATrace) {
  Trace trace = sample_trace();
  EXPECT_FALSE(json::parse(format_trace(trace)).contains("tracing"));
  EXPECT_FALSE(parse_trace(format_trace(trace), "t.json").tracing);
  trace.tracing = sample_tracing();
  trace.environment.beside_allocator = {400, 500, 600};
  const Trace again = parse_trace(format_trace(trace), "t.json");
  EXPECT_EQ(again.tracing, trace.tracing);
  EXPECT_EQ(again.environment, trace.environment);
}

TEST(TracingJson, IsPartOfReportsAndBaselines) {
  Trace trace = sample_trace();
  trace.tracing = sample_tracing();
  const StepSummary figures = parse_figures(format_baseline(figures_of(trace, "t.json"), "0"), "b.json");
  EXPECT_EQ(figures.tracing, trace.tracing);
}

TEST(MemoryBesideAllocator, MustNotBeNegativeInATrace) {
  Trace trace = sample_trace();
  trace.environment.beside_allocator = {400, -500, 600};
  try {
    parse_trace(format_trace(trace), "t.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "t.json: environment.beside_allocator.warm_bytes: -500 is negative");
  }
}

TEST(RelativeCost, IsAShareOfTheUntracedStep) {
  EXPECT_DOUBLE_EQ(relative_cost({1000, 900, 1100}, {1012, 1000, 1020}), 0.012);
  EXPECT_DOUBLE_EQ(relative_cost({1000, 900, 1100}, {990, 980, 1020}), -0.01);
  EXPECT_EQ(relative_cost({}, {1012, 1000, 1020}), 0);
}

TEST(LossesText, NamesEachKindOfLoss) {
  Tracing tracing;
  EXPECT_FALSE(tracing.lost_records());
  EXPECT_EQ(losses_text(tracing), "0 records dropped");
  tracing.untimed_records = 3;
  EXPECT_TRUE(tracing.lost_records());
  tracing.dropped_records = 1;
  tracing.unreadable_buffers = 2;
  EXPECT_EQ(losses_text(tracing), "1 record dropped, 3 without times, 2 buffers unreadable");
}

TEST(AchievedRate, IsTheRateOfLargeCopiesOverAllSteps) {
  Tracing tracing;
  tracing.steps.resize(2);
  EXPECT_EQ(achieved_rate(tracing, &GpuFigures::d2h), std::nullopt);
  tracing.steps[0].d2h = {
      .busy_ns = 7, .bytes = 500, .copies_ns = 70, .large_bytes = 300, .large_copies_ns = 2};
  tracing.steps[1].d2h = {
      .busy_ns = 9, .bytes = 900, .copies_ns = 90, .large_bytes = 500, .large_copies_ns = 2};
  EXPECT_DOUBLE_EQ(achieved_rate(tracing, &GpuFigures::d2h).value(), 200e9);
  EXPECT_EQ(achieved_rate(tracing, &GpuFigures::h2d), std::nullopt);
}

}  // namespace
}  // namespace offprof
