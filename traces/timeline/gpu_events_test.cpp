#include "traces/timeline/gpu_events.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"
#include "traces/timeline/timeline_reader.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint32_t kCompute = 7, kCopies = 9;

/// Returns the trace of a traced run on a GPU: a kernel for the operator, and the copy out.
Trace traced() {
  Trace trace = sample_trace();
  Timeline& timeline = trace.timeline;
  std::erase_if(timeline.spans, [](const Span& span) { return span.kind == SpanKind::kCopy; });
  timeline.spans[0].external_id = 3;
  timeline.flows[1].stream = kCopies;
  const GpuSpan launch{GpuSpanKind::kCall, "cudaLaunchKernel", 0, 600, 50, 0, 11, 3};
  GpuSpan kernel{GpuSpanKind::kKernel, "relu<float>(int)", kCompute, 700, 1000, 0, 11, 3};
  kernel.grid = {8, 1, 1};
  kernel.block = {128, 2, 1};
  const GpuSpan set{GpuSpanKind::kSet, "Memset (Device)", kCompute, 1800, 10, 64};
  const GpuSpan ask{GpuSpanKind::kCall, "cudaMemcpyAsync", 1, 1900, 40, 0, 12};
  GpuSpan copy{GpuSpanKind::kCopy, "Memcpy DtoH (Device -> Pinned)", kCopies, 2000, 2048, 4096, 12};
  copy.tensor = 0;
  copy.lead_ns = 500;
  const GpuSpan driver{GpuSpanKind::kCall, "cuLaunchKernel", 0, 3000, 50, 0, 13};
  timeline.gpu = {launch, kernel, set, ask, copy, driver};
  return trace;
}

std::vector<json> events_of(const Trace& trace, const std::string& key, const json& value) {
  std::vector<json> events;
  const json document = json::parse(format_trace(trace));
  for (const json& event : document["traceEvents"])
    if (event.value(key, json()) == value) events.push_back(event);
  return events;
}

json only_event(const Trace& trace, const std::string& category) {
  const auto events = events_of(trace, "cat", category);
  EXPECT_THAT(events, SizeIs(1)) << category;
  return events.at(0);
}

TEST(GpuEvents, PutAKernelOnItsStreamLikePyTorchsProfiler) {
  const json kernel = only_event(traced(), "kernel");
  EXPECT_EQ(kernel["name"], "relu<float>(int)");
  EXPECT_EQ(kernel["pid"], 0);
  EXPECT_EQ(kernel["tid"], kCompute);
  EXPECT_EQ(kernel["ts"], 0.7);
  EXPECT_EQ(kernel["dur"], 1.0);
  EXPECT_EQ(kernel["args"], json::parse(R"({"device": 0, "context": 1, "stream": 7, "correlation": 11,
                                            "External id": 3, "grid": [8, 1, 1], "block": [128, 2, 1]})"));
}

TEST(GpuEvents, GiveBytesRateAndTensorOfACopy) {
  const json copy = only_event(traced(), "gpu_memcpy");
  EXPECT_EQ(copy["tid"], kCopies);
  EXPECT_EQ(copy["args"], (json{{"device", 0},
                                {"context", 1},
                                {"stream", 9},
                                {"correlation", 12},
                                {"bytes", 4096},
                                {"memory bandwidth (GB/s)", 2.0},
                                {"tensor", 0},
                                {"op", "aten::relu"},
                                {"lead_ns", 500}}));
}

TEST(GpuEvents, LeaveOutTheCorrelationOfWorkWithoutACall) {
  const json set = only_event(traced(), "gpu_memset");
  EXPECT_EQ(set["args"]["bytes"], 64);
  EXPECT_FALSE(set["args"].contains("correlation"));
}

TEST(GpuEvents, PutCallsOnTheHostByThread) {
  const auto calls = events_of(traced(), "cat", "cuda_runtime");
  ASSERT_THAT(calls, SizeIs(2));
  EXPECT_EQ(calls[0]["pid"], 1);
  EXPECT_NE(calls[0]["tid"], calls[1]["tid"]);
  EXPECT_EQ(only_event(traced(), "cuda_driver")["name"], "cuLaunchKernel");
}

TEST(GpuEvents, DrawAnArrowFromACallToItsWork) {
  const auto arrows = events_of(traced(), "cat", "ac2g");
  ASSERT_THAT(arrows, SizeIs(4));
  EXPECT_EQ(arrows[0]["ph"], "s");
  EXPECT_EQ(arrows[0]["ts"], 0.6);
  EXPECT_EQ(arrows[1]["ph"], "f");
  EXPECT_EQ(arrows[1]["tid"], kCompute);
  EXPECT_EQ(arrows[0]["id"], arrows[1]["id"]);
}

TEST(GpuEvents, GiveAnOperatorTheIdOfItsWork) {
  const auto ops = events_of(traced(), "name", "aten::relu");
  EXPECT_EQ(ops.at(0)["args"]["External id"], 3);
}

TEST(GpuEvents, DrawATensorsArrowToTheStreamOfItsCopy) {
  for (const json& point : events_of(traced(), "cat", "offload"))
    if (point["args"]["point"] == "copy out") {
      EXPECT_EQ(point["tid"], kCopies);
    }
}

TEST(GpuEvents, EscapeNames) {
  Trace trace = traced();
  const std::string name = "k<\"a\\b\">\n\x01";
  trace.timeline.gpu[1].name = name;
  EXPECT_EQ(only_event(trace, "kernel")["name"], name);
}

TEST(GpuEvents, NameTheRowsOfStreams) {
  std::vector<std::string> names;
  for (const json& event : events_of(traced(), "name", "thread_name")) names.push_back(event["args"]["name"]);
  EXPECT_THAT(names, testing::ElementsAre("compute", "allocator", "stream 7", "stream 9",
                                          "CUDA calls, thread 1", "CUDA calls, thread 2"));
}

TEST(GpuEvents, PutUntracedCopiesOnTheirOwnRow) {
  Trace trace = traced();
  trace.timeline.spans.push_back({Track::kH2d, SpanKind::kCopy, "copy in", 4500, 4096, 4096, 0, ""});
  const auto copies = events_of(trace, "cat", "gpu_memcpy");
  ASSERT_THAT(copies, SizeIs(2));
  const int row = copies[0]["name"] == "Memcpy HtoD (Host -> Device)" ? 0 : 1;
  EXPECT_EQ(copies[row]["tid"], 2);
  EXPECT_GT(copies[row]["args"]["correlation"], 13);
}

TEST(GpuEvents, LetDiffReadOnlyCopiesOfSavedTensors) {
  Trace trace = traced();
  trace.timeline.gpu.push_back(
      {GpuSpanKind::kCopy, "Memcpy DtoH (Device -> Pageable)", kCompute, 5000, 10, 4, 14});
  const std::string text = format_trace(trace);
  TextSource source(text);
  const auto read = parse_timeline(source, "t.json");
  std::vector<Span> copies;
  for (const Span& span : read->spans)
    if (span.kind == SpanKind::kCopy) copies.push_back(span);
  ASSERT_THAT(copies, SizeIs(1));
  EXPECT_EQ(copies[0].track, Track::kD2h);
  EXPECT_EQ(copies[0].bytes, 4096);
}

TEST(GpuEvents, LetDiffCountACopyFromWhenItsStreamReachedIt) {
  const std::string text = format_trace(traced());
  TextSource source(text);
  const auto read = parse_timeline(source, "t.json");
  const auto copy = std::ranges::find(read->spans, SpanKind::kCopy, &Span::kind);
  EXPECT_EQ(copy->begin_ns, 1500);
  EXPECT_EQ(copy->duration_ns, 2548);
}

}  // namespace
}  // namespace offprof
