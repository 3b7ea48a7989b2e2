#include "traces/timeline/timeline_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::HasSubstr;

std::optional<Timeline> timeline_of(const std::string& text) {
  TextSource source(text);
  return parse_timeline(source, "t.json");
}

std::string error_of(const std::string& text) {
  try {
    timeline_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

/// Returns the error for the sample trace with another value in the first event called `name`.
std::string error_with(const std::string& name, const std::string& key, const nlohmann::json& value) {
  auto document = nlohmann::json::parse(format_trace(sample_trace()));
  for (auto& event : document["traceEvents"]) {
    if (event["name"] != name) continue;
    event[key] = value;
    break;
  }
  return error_of(document.dump());
}

const Span& span_named(const Timeline& timeline, const std::string& name) {
  return *std::ranges::find(timeline.spans, name, &Span::name);
}

TEST(ReadTimeline, FindsEveryWrittenSpan) {
  const Timeline timeline = timeline_of(format_trace(sample_trace())).value();
  ASSERT_EQ(timeline.spans.size(), sample_trace().timeline.spans.size());
  for (const Span& written : sample_trace().timeline.spans) {
    const Span& read = span_named(timeline, written.name);
    EXPECT_EQ(read.track, written.track);
    EXPECT_EQ(read.kind, written.kind);
    EXPECT_EQ(read.begin_ns, written.begin_ns);
    EXPECT_EQ(read.duration_ns, written.duration_ns);
    EXPECT_EQ(read.bytes, written.bytes);
    EXPECT_EQ(read.tensor, written.tensor);
    EXPECT_EQ(read.reason, written.reason);
    EXPECT_EQ(read.copy_track, written.copy_track);
  }
}

TEST(ReadTimeline, FindsTheDirectionOfWaitsUnderAnyName) {
  Trace trace = sample_trace();
  const Span link = {Track::kCompute, SpanKind::kWait, kWaitForLink, 5, 1, 0, 0, "busy", Track::kD2h};
  trace.timeline.spans = {link};
  EXPECT_EQ(timeline_of(format_trace(trace)).value().spans.at(0).copy_track, Track::kD2h);
}

TEST(ReadTimeline, DerivesTheDirectionOfWaitsInEarlierFilesFromTheirName) {
  Trace trace = sample_trace();
  const auto track_of = [&](const char* name) {
    trace.timeline.spans = {{Track::kCompute, SpanKind::kWait, name, 5, 1, 0, 0, "busy"}};
    return timeline_of(format_trace(trace)).value().spans.at(0).copy_track;
  };
  EXPECT_EQ(track_of("wait for copy out"), Track::kD2h);
  EXPECT_EQ(track_of("wait for copy in"), Track::kH2d);
  EXPECT_EQ(track_of("wait for copy"), std::nullopt);
}

TEST(ReadTimeline, FindsNestedOperatorsOfZeroDuration) {
  Trace trace = sample_trace();
  trace.timeline.spans = {{Track::kCompute, SpanKind::kOp, "linear", 5, 0, 0, -1, ""},
                          {Track::kCompute, SpanKind::kOp, "t", 5, 0, 0, -1, "", {}, true}};
  const Timeline timeline = timeline_of(format_trace(trace)).value();
  EXPECT_FALSE(timeline.spans.at(0).is_nested);
  EXPECT_TRUE(timeline.spans.at(1).is_nested);
}

TEST(ReadTimeline, KeepsEveryNanosecondOfALongRun) {
  Trace trace = sample_trace();
  trace.timeline.spans = {{Track::kCompute, SpanKind::kOp, "op", 86'400'000'000'123, 1, 0, -1, ""}};
  const Timeline timeline = timeline_of(format_trace(trace)).value();
  EXPECT_EQ(timeline.spans.at(0).begin_ns, 86'400'000'000'123);
}

TEST(ReadTimeline, AcceptsTheSchemaAfterTheEvents) {
  const auto sorted = nlohmann::json::parse(format_trace(sample_trace()));
  nlohmann::ordered_json document = {{"traceEvents", sorted["traceEvents"]}, {"schema", sorted["schema"]}};
  EXPECT_EQ(timeline_of(document.dump()).value().spans.size(), sample_trace().timeline.spans.size());
}

TEST(ReadTimeline, SkipsUnknownValuesAndMembers) {
  auto document = nlohmann::json::parse(format_trace(sample_trace()));
  for (auto& event : document["traceEvents"]) {
    event["tags"] = {{"name", "x"}, {"dur", "y"}, {"ts", -1}};
    if (event.contains("args")) event["args"]["stall"] = {{"reason", "z"}, {"tensor", -7}};
  }
  const Timeline timeline = timeline_of(document.dump()).value();
  EXPECT_EQ(span_named(timeline, "wait for copy in").reason, "reload");
  EXPECT_EQ(span_named(timeline, "wait for copy in").tensor, 0);
}

TEST(ReadTimeline, ReturnsNothingForAReport) {
  EXPECT_FALSE(timeline_of(R"({"schema": "offprof.report/1", "measured": {}})").has_value());
}

TEST(ReadTimeline, RejectsAnEventWithoutATime) {
  EXPECT_THAT(error_with("aten::relu", "ts", nullptr), HasSubstr("'ts' is missing"));
  EXPECT_THAT(error_with("aten::relu", "dur", "long"), HasSubstr("'dur' is missing or not a number"));
}

TEST(ReadTimeline, ReportsWhichEventIsOutOfRange) {
  EXPECT_THAT(error_with("aten::relu", "dur", -1), HasSubstr("t.json: traceEvents[13]: dur: -1 is not"));
  EXPECT_THAT(error_with("ProfilerStep#0", "ts", 1e300), HasSubstr("traceEvents[11]: ts: 1e+300 is not"));
  const nlohmann::json args = {{"reason", "r"}, {"tensor", 1e30}};
  EXPECT_THAT(error_with("wait for copy in", "args", args), HasSubstr("tensor is out of range"));
}

TEST(ReadTimeline, RejectsEventsWhoseTimesOverflow) {
  auto document = nlohmann::json::parse(format_trace(sample_trace()));
  const nlohmann::json event = {{"ph", "X"}, {"cat", "cpu_op"}, {"name", "x"}, {"ts", 0}, {"dur", 9e12}};
  for (int i = 0; i < 200; ++i) document["traceEvents"].push_back(event);
  EXPECT_THAT(error_of(document.dump()), HasSubstr("the total time of the events is too large"));
}

TEST(ReadTimeline, AddsTheLeadOfACopyToTheSum) {
  auto document = nlohmann::json::parse(format_trace(sample_trace()));
  const nlohmann::json event = {{"ph", "X"},  {"cat", "gpu_memcpy"},
                                {"ts", 9e12}, {"name", "Memcpy DtoH (Device -> Pinned)"},
                                {"dur", 0},   {"args", {{"tensor", 0}, {"lead_ns", 9e15}}}};
  document["traceEvents"].push_back(event);
  EXPECT_EQ(error_of(document.dump()), "no error");
  for (int i = 0; i < 200; ++i) document["traceEvents"].push_back(event);
  EXPECT_THAT(error_of(document.dump()), HasSubstr("the total time of the events is too large"));
}

TEST(ReadTimeline, RejectsATruncatedFile) {
  const std::string text = format_trace(sample_trace());
  EXPECT_THAT(error_of(text.substr(0, text.size() - 20)), HasSubstr("truncated"));
}

}  // namespace
}  // namespace offprof
