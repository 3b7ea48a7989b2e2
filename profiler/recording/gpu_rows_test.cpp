#include "profiler/recording/gpu_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/recorder/pass_sketch.h"
#include "profiler/recording/timeline_builder.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Time by which the tracer's clock is ahead of the clock of the marks.
constexpr Nanoseconds kAhead = 1'000'000;
constexpr std::uint32_t kCompute = 7, kCopies = 9;

/// Builds the activity that a tracer saw, with times on the clock of the marks.
class ActivitySketch {
 public:
  ActivitySketch& kernel(const std::string& name, std::uint64_t cause, Nanoseconds begin, Nanoseconds end) {
    StreamWork work = add(StreamWorkKind::kKernel, kCompute, cause, begin, end);
    work.name = name_index(name);
    return keep(work);
  }
  ActivitySketch& copy(GpuMemoryKind from, GpuMemoryKind to, std::uint64_t cause, Nanoseconds begin,
                       Nanoseconds end, std::uint32_t stream = kCopies) {
    StreamWork work = add(StreamWorkKind::kCopy, stream, cause, begin, end);
    work.from = from;
    work.to = to;
    work.bytes = 64;
    return keep(work);
  }
  /// Adds the call that requested the last work.
  ActivitySketch& call(const std::string& name, std::uint32_t thread, Nanoseconds begin, Nanoseconds end) {
    activity_.calls.push_back({name_index(name), thread, correlation_, begin + kAhead, end + kAhead});
    return *this;
  }
  GpuActivity finish() { return std::move(activity_); }

 private:
  StreamWork add(StreamWorkKind kind, std::uint32_t stream, std::uint64_t cause, Nanoseconds begin,
                 Nanoseconds end) {
    StreamWork work;
    work.kind = kind;
    work.stream = stream;
    work.correlation = ++correlation_;
    work.begin_ns = begin + kAhead;
    work.end_ns = end + kAhead;
    activity_.causes.push_back({correlation_, cause});
    return work;
  }
  ActivitySketch& keep(const StreamWork& work) {
    activity_.work.push_back(work);
    return *this;
  }
  std::int32_t name_index(const std::string& name) {
    activity_.names.push_back(name);
    return static_cast<std::int32_t>(activity_.names.size()) - 1;
  }

  GpuActivity activity_;
  std::uint32_t correlation_ = 0;
};

/// One operator from 10 to 50, event 0, saves a tensor that is copied out and back in.
StepResult step_with(GpuActivity activity) {
  PassSketch sketch(0, 1000);
  sketch.compute(10).op_begin("aten::relu").compute(40).op_end();
  sketch.alloc(1, 64).pack(1, 0).command(CopyOut{{0, 0, 64}});
  sketch.compute(30).unpack(0).command(CopyIn{{0, 0, 64}});
  sketch.compute(20);
  StepResult step;
  step.recording = sketch.finish();
  step.copies = {{CopyDirection::kD2h, 1055, 1066, 64, 0}, {CopyDirection::kH2d, 1081, 1095, 64, 0}};
  step.gpu = std::move(activity);
  return step;
}

/// The operator's kernel ends with the operator, so that the offset of the clocks is known.
ActivitySketch relu() {
  ActivitySketch sketch;
  sketch.kernel("_Z4reluPf", WorkCause::of_op(0), 1020, 1050).call("cudaLaunchKernel", 90, 1011, 1013);
  return sketch;
}

Timeline timeline_of(GpuActivity activity) {
  const StepResult step = step_with(std::move(activity));
  return build_timeline({&step, 1});
}

TEST(GpuRows, AreEmptyWithoutATrace) {
  const Timeline timeline = timeline_of({});
  EXPECT_THAT(timeline.gpu, IsEmpty());
  EXPECT_EQ(timeline.spans.back().kind, SpanKind::kCopy);
}

TEST(GpuRows, PutKernelsAndCallsOnTheClockOfTheStep) {
  const Timeline timeline = timeline_of(relu().finish());
  ASSERT_THAT(timeline.gpu, SizeIs(2));
  EXPECT_EQ(timeline.gpu[0].name, "relu(float*)");
  EXPECT_EQ(timeline.gpu[0].row, kCompute);
  EXPECT_EQ(timeline.gpu[0].begin_ns, 20);
  EXPECT_EQ(timeline.gpu[0].duration_ns, 30);
  EXPECT_EQ(timeline.gpu[1].kind, GpuSpanKind::kCall);
  EXPECT_EQ(timeline.gpu[1].begin_ns, 11);
}

TEST(GpuRows, GiveAKernelItsCallAndItsOperatorOneId) {
  const Timeline timeline = timeline_of(relu().finish());
  std::vector<std::int64_t> ids;
  for (const Span& span : timeline.spans)
    if (span.kind == SpanKind::kOp) ids.push_back(span.external_id);
  ASSERT_THAT(ids, SizeIs(1));
  EXPECT_NE(ids[0], 0);
  EXPECT_EQ(timeline.gpu[0].external_id, ids[0]);
  EXPECT_EQ(timeline.gpu[1].external_id, ids[0]);
  EXPECT_EQ(timeline.gpu[0].correlation, timeline.gpu[1].correlation);
}

TEST(GpuRows, ACopyOfACommandHasItsTensorAndTheTracedTimes) {
  const Timeline timeline = timeline_of(
      relu()
          .copy(GpuMemoryKind::kDevice, GpuMemoryKind::kPinned, WorkCause::of_command(0), 1057, 1064)
          .copy(GpuMemoryKind::kPinned, GpuMemoryKind::kDevice, WorkCause::of_command(1), 1083, 1090)
          .finish());
  const auto of_commands = [](const GpuSpan& span) { return span.kind == GpuSpanKind::kCopy; };
  std::vector<GpuSpan> copies;
  std::ranges::copy_if(timeline.gpu, std::back_inserter(copies), of_commands);
  ASSERT_THAT(copies, SizeIs(2));
  EXPECT_EQ(copies[0].name, "Memcpy DtoH (Device -> Pinned)");
  EXPECT_EQ(copies[0].tensor, 0);
  EXPECT_EQ(copies[0].begin_ns, 57);
  EXPECT_EQ(copies[0].lead_ns, 2);  // events place it at 55
  EXPECT_EQ(copies[1].name, "Memcpy HtoD (Pinned -> Device)");
  for (const Span& span : timeline.spans) EXPECT_NE(span.kind, SpanKind::kCopy);
  std::vector<std::string> points;
  for (const FlowPoint& point : timeline.flows)
    points.push_back(point.name + (point.stream ? " on stream " + std::to_string(*point.stream) : ""));
  EXPECT_THAT(points, ElementsAre("pack", "unpack", "copy out on stream 9", "copy in on stream 9"));
}

TEST(GpuRows, ACopyMissingInTheTraceIsTimedByEvents) {
  const Timeline timeline = timeline_of(
      relu()
          .copy(GpuMemoryKind::kDevice, GpuMemoryKind::kPinned, WorkCause::of_command(0), 1057, 1064)
          .finish());
  std::vector<std::string> copies;
  for (const Span& span : timeline.spans)
    if (span.kind == SpanKind::kCopy) copies.push_back(span.name);
  EXPECT_THAT(copies, ElementsAre("copy in"));
}

TEST(GpuRows, AGatherForACopyIsNotTheTensorsCopy) {
  const Timeline timeline = timeline_of(
      relu()
          .copy(GpuMemoryKind::kDevice, GpuMemoryKind::kDevice, WorkCause::of_command(0), 1052, 1055)
          .finish());
  EXPECT_EQ(timeline.gpu[1].name, "Memcpy DtoD (Device -> Device)");
  EXPECT_EQ(timeline.gpu[1].tensor, -1);
}

TEST(GpuRows, EachThreadOfCallsHasARow) {
  const Timeline timeline = timeline_of(
      relu().call("cudaStreamSynchronize", 91, 1060, 1070).call("cudaMalloc", 90, 1071, 1072).finish());
  ASSERT_THAT(timeline.gpu, SizeIs(4));
  EXPECT_EQ(timeline.gpu[1].row, 0U);
  EXPECT_EQ(timeline.gpu[2].row, 1U);
  EXPECT_EQ(timeline.gpu[3].row, 0U);
}

TEST(GpuRows, LaunchesHaveTheirCommonName) {
  const Timeline timeline = timeline_of(relu().call("__cudaLaunchKernel", 90, 1030, 1031).finish());
  EXPECT_EQ(timeline.gpu[2].name, "cudaLaunchKernel");
}

}  // namespace
}  // namespace offprof
