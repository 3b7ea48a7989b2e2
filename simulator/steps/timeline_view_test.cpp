#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_program.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Bytes kMostBytes = 100;
/// A byte takes one nanosecond in either direction.
constexpr Link kLink{{1e9, 0}, {1e9, 0}};

Timeline timeline_of(const StepProgram& program, const Policy& policy) {
  return replay_timeline(program, Step(program), policy, kLink);
}

std::vector<Span> spans_of(const Timeline& timeline, SpanKind kind) {
  std::vector<Span> spans;
  for (const Span& span : timeline.spans)
    if (span.kind == kind) spans.push_back(span);
  return spans;
}

/// Formats a span as `name begin+duration`.
std::vector<std::string> texts_of(const Timeline& timeline, SpanKind kind) {
  std::vector<std::string> texts;
  for (const Span& span : spans_of(timeline, kind))
    texts.push_back(span.name + " " + std::to_string(span.begin_ns) + "+" + std::to_string(span.duration_ns));
  return texts;
}

/// relu saves 100 bytes and takes 30 ns; its backward takes 20 ns; the optimizer takes 5 ns.
StepProgram relu_step() {
  ProgramSketch sketch(1000);
  sketch.phase("forward");
  sketch.op_begin("aten::relu");
  const std::int32_t x = sketch.alloc(100);
  sketch.compute(30);
  const SavedId a = sketch.save(x);
  sketch.op_end("aten::relu");
  sketch.free(x);
  sketch.phase("backward");
  sketch.op_begin("ReluBackward0");
  sketch.unpack(a);
  sketch.compute(20);
  sketch.node_end();
  sketch.op_end("ReluBackward0");
  sketch.release(a);
  sketch.phase("optimizer");
  sketch.compute(5);
  sketch.phase("end");
  return sketch.program();
}

TEST(ReplayTimeline, ShowsOperatorsPhasesAndTheStep) {
  const Timeline timeline = timeline_of(relu_step(), preset_policy("keep"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kOp), ElementsAre("aten::relu 0+30", "ReluBackward0 30+20"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kPhase),
              ElementsAre("forward 0+30", "backward 30+20", "optimizer 50+5"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kStep), ElementsAre("ProfilerStep#0 0+55"));
}

TEST(ReplayTimeline, OperatorsIncludeTheirWaits) {
  const Timeline timeline = timeline_of(relu_step(), preset_policy("offload"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kOp), ElementsAre("aten::relu 0+130", "ReluBackward0 130+120"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kWait),
              ElementsAre("wait for copy out 30+100", "wait for copy in 130+100"));
}

TEST(ReplayTimeline, WaitsNameTheirReason) {
  const std::vector<Span> waits =
      spans_of(timeline_of(relu_step(), preset_policy("offload")), SpanKind::kWait);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].tensor, 0);
  EXPECT_EQ(waits[0].bytes, 100);
  EXPECT_EQ(waits[0].reason, "no stash holds the tensor, and its D2H copy is not done");
  EXPECT_EQ(waits[1].reason, "backward needs the tensor, but its reload began too late");
}

TEST(ReplayTimeline, ShowsCopiesOnTheirTracks) {
  const Timeline timeline = timeline_of(relu_step(), preset_policy("offload"));
  EXPECT_THAT(texts_of(timeline, SpanKind::kCopy), ElementsAre("copy out 30+100", "copy in 130+100"));
  EXPECT_EQ(spans_of(timeline, SpanKind::kCopy)[0].track, Track::kD2h);
  EXPECT_EQ(spans_of(timeline, SpanKind::kCopy)[1].track, Track::kH2d);
}

TEST(ReplayTimeline, LinksPackCopiesAndUnpack) {
  std::vector<std::string> chain;
  for (const FlowPoint& point : timeline_of(relu_step(), preset_policy("offload")).flows) {
    EXPECT_EQ(point.flow, 0);
    chain.push_back(point.name + " " + std::to_string(point.at_ns));
  }
  EXPECT_THAT(chain, ElementsAre("pack 30", "copy out 30", "copy in 130", "unpack 230"));
}

TEST(ReplayTimeline, KeptTensorsHaveNoCopiesAndNoLinks) {
  const Timeline timeline = timeline_of(relu_step(), preset_policy("keep"));
  EXPECT_THAT(spans_of(timeline, SpanKind::kCopy), IsEmpty());
  EXPECT_THAT(spans_of(timeline, SpanKind::kWait), IsEmpty());
  EXPECT_THAT(timeline.flows, IsEmpty());
}

TEST(ReplayTimeline, CountsDeviceAndHostBytes) {
  std::vector<std::string> counters;
  for (const CounterSample& sample : timeline_of(relu_step(), preset_policy("offload")).counters)
    counters.push_back(sample.name + " " + std::to_string(sample.at_ns) + " " + std::to_string(sample.value));
  EXPECT_THAT(counters, ElementsAre("device_bytes 0 1000", "host_bytes 0 0", "device_bytes 0 1100",
                                    "host_bytes 130 100", "device_bytes 130 1000", "device_bytes 230 1100",
                                    "device_bytes 250 1000", "host_bytes 250 0"));
}

// --- Properties ---

struct RandomReplay {
  StepProgram program = ChainSketch::program(*random_layers(kMostBytes));
  Policy policy = *random_policy(*random_scheduler(), kMostBytes);
  Metrics metrics = replay(Step(program), policy, kLink).metrics;
  Timeline timeline = timeline_of(program, policy);
};

Nanoseconds end_of(const Span& span) {
  return span.begin_ns + span.duration_ns;
}

bool cross(const Span& a, const Span& b) {
  return a.begin_ns < b.begin_ns && b.begin_ns < end_of(a) && end_of(a) < end_of(b);
}

RC_GTEST_PROP(ReplayTimelineProperty, SpansOfATrackNestOrFollow, ()) {
  const RandomReplay replay;
  for (const Span& a : replay.timeline.spans)
    for (const Span& b : replay.timeline.spans) RC_ASSERT(a.track != b.track || !cross(a, b));
}

RC_GTEST_PROP(ReplayTimelineProperty, CopiesOfATrackNeverOverlap, ()) {
  const RandomReplay replay;
  std::map<Track, Nanoseconds> last_end;
  for (const Span& copy : spans_of(replay.timeline, SpanKind::kCopy)) {
    RC_ASSERT(copy.begin_ns >= last_end[copy.track]);
    last_end[copy.track] = end_of(copy);
  }
}

RC_GTEST_PROP(ReplayTimelineProperty, UnderTrlNoTwoCopiesOverlap, ()) {
  const StepProgram program = ChainSketch::program(*random_layers(kMostBytes));
  Nanoseconds last_end = 0;
  for (const Span& copy :
       spans_of(timeline_of(program, *random_policy(SchedulerKind::kTrl, kMostBytes)), SpanKind::kCopy)) {
    RC_ASSERT(copy.begin_ns >= last_end);
    last_end = end_of(copy);
  }
}

RC_GTEST_PROP(ReplayTimelineProperty, CopiesAddUpToTheMetrics, ()) {
  const RandomReplay replay;
  std::map<Track, Bytes> bytes;
  std::map<Track, Nanoseconds> busy;
  for (const Span& copy : spans_of(replay.timeline, SpanKind::kCopy)) {
    bytes[copy.track] += copy.bytes;
    busy[copy.track] += copy.duration_ns;
  }
  RC_ASSERT(bytes[Track::kD2h] == *replay.metrics.d2h_bytes);
  RC_ASSERT(bytes[Track::kH2d] == *replay.metrics.h2d_bytes);
  RC_ASSERT(busy[Track::kD2h] == *replay.metrics.d2h_busy_ns);
  RC_ASSERT(busy[Track::kH2d] == *replay.metrics.h2d_busy_ns);
}

RC_GTEST_PROP(ReplayTimelineProperty, WaitsAddUpToTheStallTime, ()) {
  const RandomReplay replay;
  Nanoseconds total = 0;
  for (const Span& wait : spans_of(replay.timeline, SpanKind::kWait)) total += wait.duration_ns;
  RC_ASSERT(total == *replay.metrics.exposed_ns);
}

RC_GTEST_PROP(ReplayTimelineProperty, CountersReachThePeaks, ()) {
  const RandomReplay replay;
  std::map<std::string, std::int64_t> highest;
  for (const CounterSample& sample : replay.timeline.counters)
    highest[sample.name] = std::max(highest[sample.name], sample.value);
  RC_ASSERT(highest["device_bytes"] == *replay.metrics.device_peak_bytes);
  RC_ASSERT(highest["host_bytes"] == *replay.metrics.host_peak_bytes);
}

RC_GTEST_PROP(ReplayTimelineProperty, EverythingExceptCopiesIsWithinTheStep, ()) {
  const RandomReplay replay;
  for (const Span& span : replay.timeline.spans) {
    RC_ASSERT(span.begin_ns >= 0);
    RC_ASSERT(span.kind == SpanKind::kCopy || end_of(span) <= *replay.metrics.step_time_ns);
  }
}

TEST(ReplayTimeline, OperatorsBesideTheHostAreWithinTheReplaysTime) {
  ProgramSketch sketch;
  sketch.op_begin("aten::relu");
  const SavedId tensor = sketch.save(sketch.alloc(100));
  sketch.op_end("aten::relu");
  sketch.node(tensor);
  StepProgram program = sketch.program();
  for (Event& event : program.events) {
    event.compute_ns = 1000;  // measured by marks on the stream, so they overlap with the host's work
    program.work.push_back({10, 20, 30, Work::kNoWait, 20});
  }
  const Step step(program);
  const Timeline timeline = replay_timeline(program, step, preset_policy("keep"), kAnyLink);
  const Nanoseconds end = *replay(step, preset_policy("keep"), kAnyLink).metrics.step_time_ns;
  for (const Span& span : timeline.spans) {
    EXPECT_GE(span.duration_ns, 0) << span.name;
    EXPECT_LE(span.begin_ns + span.duration_ns, end) << span.name;
  }
}

}  // namespace
}  // namespace offprof
