#include "profiler/recording/clock_offset.h"

#include <gtest/gtest.h>

#include "profiler/recorder/pass_sketch.h"

namespace offprof {
namespace {

constexpr std::uint32_t kCompute = 7, kCopies = 8;

/// Two operators, from 0 to 100 and from 100 to 300. The first begins at event index 0, the second at 2.
RecordedPass two_ops() {
  PassSketch sketch;
  sketch.op_begin("aten::mm").compute(100).op_end().op_begin("aten::relu").compute(200).op_end();
  return sketch.finish();
}

/// Adds work for an operator that ends at that time.
void add_work(GpuActivity& activity, std::size_t op, std::uint32_t stream, Nanoseconds end) {
  StreamWork work;
  work.stream = stream;
  work.correlation = static_cast<std::uint32_t>(activity.work.size() + 1);
  work.begin_ns = end - 10;
  work.end_ns = end;
  activity.work.push_back(work);
  activity.causes.push_back({work.correlation, WorkCause::of_op(op)});
}

TEST(ClockOffset, UsesTheLeastDifferenceBetweenMarksAndWork) {
  GpuActivity activity;
  add_work(activity, 0, kCompute, 5'090);  // the mark at 100 is 10 late
  add_work(activity, 2, kCompute, 5'298);  // the mark at 300 is 2 late
  EXPECT_EQ(offset_to_marks(two_ops(), activity), -4'998);
}

TEST(ClockOffset, IgnoresWorkOfOtherStreams) {
  GpuActivity activity;
  add_work(activity, 0, kCompute, 5'100);
  add_work(activity, 2, kCompute, 5'300);
  add_work(activity, 2, kCopies, 9'000);
  EXPECT_EQ(offset_to_marks(two_ops(), activity), -5'000);
}

TEST(ClockOffset, IsUnknownWithoutWorkOfAnOperator) {
  GpuActivity activity;
  EXPECT_EQ(offset_to_marks(two_ops(), activity), std::nullopt);
  add_work(activity, 0, kCompute, 5'100);
  activity.causes[0].id = WorkCause::of_command(0);
  EXPECT_EQ(offset_to_marks(two_ops(), activity), std::nullopt);
}

}  // namespace
}  // namespace offprof
