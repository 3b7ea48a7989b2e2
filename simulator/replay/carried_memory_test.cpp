#include <gtest/gtest.h>

#include <string>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Bytes kLeft = 100, kSmall = 10;

/// A step that saves a tensor of 100 bytes and does not release it, then allocates 50 bytes for a moment. The
/// next step allocates 30 bytes for a moment before it frees the tensor's storage.
StepProgram carrying_program(bool is_unpacked = false) {
  ProgramSketch sketch(kLeft + kSmall);
  const std::int32_t old_storage = sketch.resident(kLeft);
  sketch.free(sketch.alloc(30));
  sketch.free(old_storage);
  const std::int32_t left = sketch.alloc(kLeft);
  const SavedId tensor = sketch.save(left);
  sketch.free(left);
  sketch.free(sketch.alloc(50));
  if (is_unpacked) {
    sketch.unpack(tensor);
    sketch.node_end();
  }
  StepProgram program = sketch.program();
  program.renewals = {{old_storage, left}};
  return program;
}

Metrics metrics_of(const StepProgram& program, const Policy& policy) {
  return replay(Step(program), policy, kAnyLink).metrics;
}

TEST(CarriedMemory, IsOnTheDeviceIfNothingIsOffloaded) {
  const Metrics keep = metrics_of(carrying_program(), preset_policy("keep"));
  EXPECT_EQ(keep.device_resident_bytes, kSmall + kLeft);
  EXPECT_EQ(keep.device_peak_bytes, kSmall + kLeft + 50);
  EXPECT_EQ(keep.host_peak_bytes, 0);
}

TEST(CarriedMemory, IsInHostMemoryIfItIsOffloaded) {
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  const Metrics metrics = metrics_of(carrying_program(), offload);
  EXPECT_EQ(metrics.device_resident_bytes, kSmall);
  EXPECT_EQ(metrics.device_peak_bytes, kSmall + kLeft);
  EXPECT_EQ(metrics.host_peak_bytes, kLeft);
}

TEST(CarriedMemory, OfTheStepBeforeCountsUntilTheStepReleasesIt) {
  ProgramSketch sketch(kLeft);
  const std::int32_t old_storage = sketch.resident(kLeft);
  const std::int32_t left = sketch.alloc(kLeft);
  sketch.save(left);
  sketch.free(left);
  sketch.free(old_storage);
  StepProgram program = sketch.program();
  program.renewals = {{old_storage, left}};
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  EXPECT_EQ(metrics_of(program, offload).host_peak_bytes, 2 * kLeft);
  EXPECT_EQ(metrics_of(program, offload).device_peak_bytes, kLeft);
  EXPECT_EQ(metrics_of(program, preset_policy("keep")).device_peak_bytes, 2 * kLeft);

  offload.host_memory_bytes = 2 * kLeft - 1;  // has no room for the tensors of two steps: they take turns
  EXPECT_LE(*metrics_of(program, offload).host_peak_bytes, kLeft);
  EXPECT_FALSE(leaves_the_same(Step(program), offload, kAnyLink));
  offload.host_memory_bytes = 2 * kLeft;
  EXPECT_TRUE(leaves_the_same(Step(program), offload, kAnyLink));
}

TEST(CarriedMemory, StaysOnTheDeviceInTheStash) {
  Policy stash = preset_policy("offload");
  stash.stash_count = 1;
  const Metrics metrics = metrics_of(carrying_program(), stash);
  EXPECT_EQ(metrics.device_resident_bytes, kSmall + kLeft);
  EXPECT_EQ(metrics.device_peak_bytes, kSmall + kLeft + 50);
  EXPECT_EQ(metrics.host_peak_bytes, kLeft);
}

TEST(CarriedMemory, HoldsTheReloadOfATensorThatStays) {
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  const Metrics metrics = metrics_of(carrying_program(/*is_unpacked=*/true), offload);
  EXPECT_EQ(metrics.device_resident_bytes, kSmall + kLeft);
  EXPECT_EQ(metrics.device_peak_bytes, kSmall + kLeft + 30);
}

/// The program holds the tensor as well, in a variable that gets its next value before the graph is dropped.
TEST(CarriedMemory, OfAStorageThatTheProgramHoldsIsThereUntilItLetsGo) {
  ProgramSketch sketch(kLeft);
  const std::int32_t old_storage = sketch.resident(kLeft);
  const std::int32_t left = sketch.alloc(kLeft);
  sketch.save(left);
  const std::int32_t scratch = sketch.alloc(50);
  sketch.free(old_storage);
  sketch.free(scratch);
  StepProgram program = sketch.program();
  program.renewals = {{old_storage, left, /*let_go=*/2}};
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  EXPECT_EQ(metrics_of(program, offload).device_resident_bytes, kLeft);
  EXPECT_EQ(metrics_of(program, offload).device_peak_bytes, 2 * kLeft);
  EXPECT_EQ(metrics_of(program, preset_policy("keep")).device_peak_bytes, 2 * kLeft + 50);
  program.renewals[0].let_go = 0;
  EXPECT_EQ(metrics_of(program, offload).device_peak_bytes, kLeft + 50);
}

TEST(CarriedMemory, OfTheFirstStepIsWhatOffloadingNothingLeaves) {
  const Step step(carrying_program());
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  const Prediction first = replay_after(everything_on_device(step), step, offload, kAnyLink);
  EXPECT_EQ(first.metrics.device_resident_bytes, kSmall + kLeft);
  EXPECT_EQ(first.carried.copies.size(), 1U);
  EXPECT_EQ(replay_after(first.carried, step, offload, kAnyLink).metrics.device_resident_bytes, kSmall);
}

TEST(CarriedMemory, IsNotFollowedWithoutARenewal) {
  StepProgram program = carrying_program();
  program.renewals.clear();
  EXPECT_FALSE(Step(program).carries_tensors());
  EXPECT_TRUE(Step(carrying_program()).carries_tensors());
}

}  // namespace
}  // namespace offprof
