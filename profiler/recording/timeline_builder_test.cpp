#include "profiler/recording/timeline_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiler/recorder/pass_sketch.h"
#include "simulator/steps/views.h"
#include "tests/support/sample_program.h"
#include "traces/analysis/timeline_diff.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepResult step_of(PassSketch& sketch) {
  StepResult step;
  step.recording = sketch.finish();
  return step;
}

Timeline timeline_of(const StepResult& step) {
  return build_timeline({&step, 1});
}
Timeline timeline_of(PassSketch& sketch) {
  return timeline_of(step_of(sketch));
}

std::vector<Span> spans_of(const Timeline& timeline, SpanKind kind) {
  std::vector<Span> spans;
  for (const Span& span : timeline.spans)
    if (span.kind == kind) spans.push_back(span);
  return spans;
}

/// Returns texts of the form `name begin+duration`.
std::vector<std::string> texts_of(const Timeline& timeline, SpanKind kind) {
  std::vector<std::string> texts;
  for (const Span& span : spans_of(timeline, kind))
    texts.push_back(span.name + " " + std::to_string(span.begin_ns) + "+" + std::to_string(span.duration_ns));
  return texts;
}

/// Returns texts of the form `time value`.
std::vector<std::string> counters_of(const Timeline& timeline, const std::string& name) {
  std::vector<std::string> texts;
  for (const CounterSample& sample : timeline.counters)
    if (sample.name == name)
      texts.push_back(std::to_string(sample.at_ns) + " " + std::to_string(sample.value));
  return texts;
}

/// A step with one tensor that is copied to the host and back.
StepResult offloading_step(Nanoseconds begin = 0) {
  PassSketch sketch(100, begin);
  sketch.alloc(1, 64).pack(1, 0);
  sketch.compute(10).command(CopyOut{{0, 0, 64}});
  sketch.compute(10).command(WaitOut{{0, 0, 64}}, 5);
  sketch.compute(20).unpack(0).command(CopyIn{{0, 0, 64}});
  sketch.command(WaitIn{{0, 0, 64}}, 7);
  sketch.compute(8).command(FreeHost{{0, 0, 64}});
  StepResult step = step_of(sketch);
  step.copies = {{CopyDirection::kD2h, begin + 12, begin + 25, 64, 0},
                 {CopyDirection::kH2d, begin + 46, begin + 52, 64, 0}};
  return step;
}

TEST(BuildTimeline, IsEmptyWithoutSteps) {
  EXPECT_THAT(build_timeline({}).spans, IsEmpty());
}

TEST(BuildTimeline, CountsTimesFromTheFirstStep) {
  PassSketch first(0, 1000), second(0, 1600);
  const std::vector<StepResult> steps = {step_of(first.compute(500)), step_of(second.compute(400))};
  EXPECT_THAT(texts_of(build_timeline(steps), SpanKind::kStep),
              ElementsAre("ProfilerStep#0 0+500", "ProfilerStep#1 600+400"));
}

TEST(BuildTimeline, APhaseEndsAtTheNextOne) {
  PassSketch sketch;
  sketch.phase("forward").compute(30).phase("backward").compute(20).phase("end").compute(5);
  EXPECT_THAT(texts_of(timeline_of(sketch), SpanKind::kPhase), ElementsAre("forward 0+30", "backward 30+20"));
}

TEST(BuildTimeline, TheLastPhaseEndsWithTheStep) {
  PassSketch sketch;
  sketch.phase("optimizer").compute(30);
  EXPECT_THAT(texts_of(timeline_of(sketch), SpanKind::kPhase), ElementsAre("optimizer 0+30"));
}

TEST(BuildTimeline, ShowsNestedOperators) {
  PassSketch sketch;
  sketch.compute(1)
      .op_begin("aten::linear")
      .compute(2)
      .op_begin("aten::addmm")
      .compute(30)
      .op_end()
      .compute(4)
      .op_end();
  EXPECT_THAT(texts_of(timeline_of(sketch), SpanKind::kOp),
              ElementsAre("aten::linear 1+36", "aten::addmm 3+30"));
}

TEST(BuildTimeline, DistinguishesNestedOperatorsWithoutDuration) {
  PassSketch sketch;
  sketch.op_begin("aten::linear").op_begin("aten::t").op_end().op_end().op_begin("aten::view").op_end();
  const std::vector<Span> ops = spans_of(timeline_of(sketch), SpanKind::kOp);
  ASSERT_EQ(ops.size(), 3U);
  EXPECT_FALSE(ops[0].is_nested);
  EXPECT_EQ(ops[1].name, "aten::t");
  EXPECT_TRUE(ops[1].is_nested);
  EXPECT_FALSE(ops[2].is_nested);
}

/// Returns texts of the form `time bytes allocated stack`.
std::vector<std::string> allocator_of(const Timeline& timeline) {
  std::vector<std::string> texts;
  for (const AllocatorEvent& event : timeline.allocator)
    texts.push_back(std::to_string(event.at_ns) + " " + std::to_string(event.bytes) + " " +
                    std::to_string(event.allocated_bytes) + " " + event.stack);
  return texts;
}

TEST(BuildTimeline, ShowsTheStackOfEachAllocationAndFree) {
  PassSketch sketch(100);
  sketch.alloc(1, 8)
      .phase("forward")
      .op_begin("aten::linear")
      .compute(2)
      .op_begin("aten::addmm")
      .alloc(2, 64);
  sketch.op_end().compute(3).free(1).op_end().phase("backward").free(2);
  EXPECT_THAT(allocator_of(timeline_of(sketch)),
              ElementsAre("0 8 108 ", "2 64 172 forward;aten::linear;aten::addmm",
                          "5 -8 164 forward;aten::linear", "5 -64 100 backward"));
}

TEST(BuildTimeline, NamesAnAutogradNodeAndItsEvaluationOnce) {
  PassSketch sketch;
  sketch.phase("backward")
      .op_begin("MulBackward0")
      .op_begin("MulBackward0")
      .op_begin("aten::mul")
      .alloc(1, 64);
  sketch.op_end().op_end().op_end();
  EXPECT_THAT(allocator_of(timeline_of(sketch)), ElementsAre("0 64 64 backward;MulBackward0;aten::mul"));
}

TEST(BuildTimeline, DistinguishesReloadsFromTheOperatorsMemory) {
  PassSketch sketch;
  sketch.phase("backward").op_begin("MulBackward0").reload(1, 64, 0).alloc(2, 32).op_end();
  EXPECT_THAT(allocator_of(timeline_of(sketch)),
              ElementsAre("0 64 64 backward;MulBackward0;reload", "0 32 96 backward;MulBackward0"));
}

TEST(BuildTimeline, LeavesOutSmallAllocations) {
  PassSketch sketch;
  sketch.alloc(1, 1000).alloc(2, 10);
  StepResult step = step_of(sketch);
  step.device_peak_bytes = 1000'000;
  EXPECT_THAT(allocator_of(timeline_of(step)), ElementsAre("0 1000 1000 "));
}

TEST(BuildTimeline, ShowsTheReservedBytesOfEachAllocation) {
  PassSketch sketch;
  sketch.alloc(1, 8).reserved(512).alloc(2, 8);
  const Timeline timeline = timeline_of(sketch);
  EXPECT_EQ(timeline.allocator[0].reserved_bytes, 0);
  EXPECT_EQ(timeline.allocator[1].reserved_bytes, 512);
}

TEST(BuildTimeline, LeavesOutUnfinishedOperators) {
  PassSketch sketch;
  sketch.op_begin("outer").op_begin("inner").compute(3).op_end().compute(1);
  EXPECT_THAT(texts_of(timeline_of(sketch), SpanKind::kOp), ElementsAre("inner 0+3"));
}

TEST(BuildTimeline, ShowsWaitsWithTheirReason) {
  const std::vector<Span> waits = spans_of(timeline_of(offloading_step()), SpanKind::kWait);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[0].name, "wait for copy out");
  EXPECT_EQ(waits[0].begin_ns, 20);
  EXPECT_EQ(waits[0].duration_ns, 5);
  EXPECT_EQ(waits[0].tensor, 0);
  EXPECT_EQ(waits[0].bytes, 64);
  EXPECT_EQ(waits[0].copy_track, Track::kD2h);
  EXPECT_EQ(waits[1].name, "wait for copy in");
  EXPECT_EQ(waits[1].reason, "backward needs the tensor");
  EXPECT_EQ(waits[1].copy_track, Track::kH2d);
}

/// Records the events of a replay as the recorder does those of a run.
class Recorder final : public ReplayListener {
 public:
  void on_command(const Command& command, Nanoseconds now) override {
    end_command(now);
    const auto index = static_cast<std::int64_t>(pass_.commands.size());
    pass_.commands.push_back({command, now, now});
    pass_.events.push_back({RawKind::kCommand, index, 0, now, now});
  }
  void on_event(std::size_t, Nanoseconds now) override { end_command(now); }

  StepResult finish(Nanoseconds step_time) {
    StepResult step;
    pass_.end_ns = step_time;
    step.recording = std::move(pass_);
    return step;
  }

 private:
  void end_command(Nanoseconds now) {
    if (ends_ < pass_.commands.size()) pass_.commands[ends_++].end_ns = now;
  }

  RecordedPass pass_;
  std::size_t ends_ = 0;
};

TEST(BuildTimeline, HasTheStallsOfASimulationOfTheSameStep) {
  const StepProgram program = ChainSketch::program(
      {{.bytes = 300}, {.bytes = 50, .saves_input = true}, {.bytes = 200}, {.bytes = 80}});
  const Link link{{1e9, 5, 20}, {0.5e9, 9, 3}};
  for (const char* preset : {"offload", "trl"}) {
    for (const std::int64_t stash : {0, 1, 2, 5}) {
      SCOPED_TRACE(preset + std::string(", stash ") + std::to_string(stash));
      Policy policy = preset_policy(preset);
      policy.threshold_bytes = 1;
      policy.stash_count = stash;
      policy.prefetch_bytes = policy.scheduler == SchedulerKind::kTrl ? 0 : 100 * stash;
      Recorder recorder;
      const Metrics metrics = replay(Step(program), policy, link, &recorder).metrics;
      const Timeline recorded = timeline_of(recorder.finish(*metrics.step_time_ns));
      const Timeline simulated = replay_timeline(program, Step(program), policy, link);
      const TimelineDiff diff = compare(recorded, simulated).value();
      EXPECT_GT(diff.waits.base, 0);
      EXPECT_EQ(diff.waits.base, diff.waits.now);
      EXPECT_THAT(diff.wait_differences, IsEmpty());
    }
  }
}

TEST(BuildTimeline, ShowsCopiesOnTheirTracks) {
  const Timeline timeline = timeline_of(offloading_step());
  EXPECT_THAT(texts_of(timeline, SpanKind::kCopy), ElementsAre("copy out 12+13", "copy in 46+6"));
  const std::vector<Span> copies = spans_of(timeline, SpanKind::kCopy);
  EXPECT_EQ(copies[0].track, Track::kD2h);
  EXPECT_EQ(copies[1].track, Track::kH2d);
  EXPECT_EQ(copies[1].bytes, 64);
}

TEST(BuildTimeline, ACopyBelongsToTheTensorThatBeganIt) {
  PassSketch sketch;
  sketch.alloc(1, 64).pack(1).alloc(2, 64).pack(2, 0).command(CopyOut{{1, 0, 64}});
  StepResult step = step_of(sketch);
  step.copies = {{CopyDirection::kD2h, 0, 1, 64, 0}};
  EXPECT_EQ(spans_of(timeline_of(step), SpanKind::kCopy).front().tensor, 1);
}

TEST(BuildTimeline, ChainsPackCopiesAndUnpack) {
  std::vector<std::string> chain;
  const Timeline timeline = timeline_of(offloading_step());
  for (const FlowPoint& point : timeline.flows) {
    EXPECT_EQ(point.flow, timeline.flows.front().flow);
    chain.push_back(point.name + " " + std::to_string(point.at_ns));
  }
  EXPECT_THAT(chain, testing::UnorderedElementsAre("pack 10", "copy out 12", "copy in 46", "unpack 45"));
}

TEST(BuildTimeline, KeptTensorsHaveNoChain) {
  PassSketch sketch;
  sketch.alloc(1, 64).pack(1).command(Keep{{0, 64}}).unpack(0);
  EXPECT_THAT(timeline_of(sketch).flows, IsEmpty());
}

TEST(BuildTimeline, SeparatesTheChainsOfSteps) {
  const std::vector<StepResult> steps = {offloading_step(), offloading_step(1000)};
  const Timeline timeline = build_timeline(steps);
  ASSERT_EQ(timeline.flows.size(), 8U);
  EXPECT_NE(timeline.flows.front().flow, timeline.flows.back().flow);
}

TEST(BuildTimeline, CountsDeviceBytes) {
  PassSketch sketch(100);
  sketch.compute(5).alloc(1, 64).compute(5).free(1);
  EXPECT_THAT(counters_of(timeline_of(sketch), "device_bytes"), ElementsAre("0 100", "5 164", "10 100"));
}

TEST(BuildTimeline, LeavesOutSmallChanges) {
  PassSketch sketch;
  sketch.alloc(1, 1'000'000).alloc(2, 10).alloc(3, 2000);
  StepResult step = step_of(sketch);
  step.device_peak_bytes = 1'002'010;
  EXPECT_THAT(counters_of(timeline_of(step), "device_bytes"), ElementsAre("0 0", "0 1000000", "0 1002010"));
}

TEST(BuildTimeline, CountsHostBytes) {
  EXPECT_THAT(counters_of(timeline_of(offloading_step()), "host_bytes"), ElementsAre("10 64", "60 0"));
}

}  // namespace
}  // namespace offprof
