#include "profiler/recording/measured.h"

#include <gtest/gtest.h>

#include <vector>

namespace offprof {
namespace {

StepResult step_of(Nanoseconds time, Nanoseconds exposed = 0) {
  StepResult step;
  step.step_time_ns = time;
  step.exposed_ns = exposed;
  return step;
}

TEST(Summarize, TakesTheHighestMemory) {
  std::vector<StepResult> steps(3);
  steps[1].device_peak_bytes = 300;
  steps[2].device_peak_bytes = 200;
  steps[0].device_resident_bytes = 50;
  steps[2].host_peak_bytes = 70;
  const Metrics metrics = summarize(steps);
  EXPECT_EQ(metrics.device_peak_bytes, 300);
  EXPECT_EQ(metrics.device_resident_bytes, 50);
  EXPECT_EQ(metrics.host_peak_bytes, 70);
}

TEST(Summarize, TakesTheHighestCopiedBytes) {
  std::vector<StepResult> steps(2);
  steps[0].d2h_bytes = 10;
  steps[1].h2d_bytes = 20;
  const Metrics metrics = summarize(steps);
  EXPECT_EQ(metrics.d2h_bytes, 10);
  EXPECT_EQ(metrics.h2d_bytes, 20);
}

TEST(Summarize, TakesTheMedianTimeWithItsSpread) {
  const std::vector<StepResult> steps = {step_of(900), step_of(100), step_of(200)};
  const Metrics metrics = summarize(steps);
  EXPECT_EQ(metrics.step_time_ns, 200);
  EXPECT_EQ(metrics.spread.at("step_time_ns_min"), 100);
  EXPECT_EQ(metrics.spread.at("step_time_ns_max"), 900);
}

TEST(Summarize, ComputeExcludesStalls) {
  const std::vector<StepResult> steps = {step_of(100, 30)};
  const Metrics metrics = summarize(steps);
  EXPECT_EQ(metrics.compute_ns, 70);
  EXPECT_EQ(metrics.exposed_ns, 30);
}

TEST(Summarize, AllTimesComeFromOneStep) {
  const std::vector<StepResult> steps = {step_of(100, 90), step_of(200, 10), step_of(300, 50)};
  const Metrics metrics = summarize(steps);
  EXPECT_EQ(metrics.step_time_ns, 200);
  EXPECT_EQ(metrics.exposed_ns, 10);
  EXPECT_EQ(metrics.compute_ns, 190);
  EXPECT_EQ(metrics.spread.at("exposed_ns_max"), 90);
}

TEST(Summarize, RelatesStallsToCopies) {
  StepResult step = step_of(100, 4);
  step.d2h_busy_ns = 15;
  step.h2d_busy_ns = 1;
  const Metrics metrics = summarize({&step, 1});
  EXPECT_EQ(metrics.d2h_busy_ns, 15);
  EXPECT_EQ(metrics.h2d_busy_ns, 1);
  EXPECT_DOUBLE_EQ(*metrics.overlap_ratio, 0.75);
}

TEST(Summarize, WithoutCopiesThereIsNoOverlapRatio) {
  const StepResult step = step_of(100);
  EXPECT_FALSE(summarize({&step, 1}).overlap_ratio);
}

TEST(Summarize, HasNoAllocatorFiguresWithoutACachingAllocator) {
  const StepResult step = step_of(100);
  EXPECT_FALSE(summarize({&step, 1}).device_allocated_peak_bytes);
  EXPECT_FALSE(summarize({&step, 1}).device_reserved_peak_bytes);
}

}  // namespace
}  // namespace offprof
