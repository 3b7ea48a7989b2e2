#include "simulator/replay/step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

using testing::ElementsAre;

TEST(Step, FoldsTheTimeOfOperatorsIntoTheNextEvent) {
  ProgramSketch sketch;
  sketch.compute(1);
  sketch.phase("forward");
  sketch.compute(20);
  sketch.op_begin("aten::relu");
  sketch.compute(300);
  sketch.alloc(8);
  sketch.compute(4000);
  sketch.op_end("aten::relu");
  const Step step(sketch.program());
  EXPECT_THAT(step.events(), ElementsAre(Event{EventKind::kAlloc, 0, 321}));
  EXPECT_EQ(step.tail_compute_ns(), 4000);
  EXPECT_EQ(step.compute_ns(), 4321);
}

/// Returns an operator that allocates, with work before each of its three events.
StepProgram relu_beside_host() {
  ProgramSketch sketch;
  sketch.op_begin("aten::relu");
  sketch.alloc(8);
  sketch.op_end("aten::relu");
  StepProgram program = sketch.program();
  program.work = {{5, 1, 6}, {5, 2, 7}, {5, 4, 9}};
  return program;
}

TEST(Step, FoldsTheWorkOfOperatorsIntoTheNextEvent) {
  const StepProgram program = relu_beside_host();
  const Step step(program);
  EXPECT_THAT(step.work(), ElementsAre(then(program.work[0], program.work[1]), program.work[2]));
}

TEST(Step, FoldsCommandsOfOtherStreamsIntoTheNextEvent) {
  StepProgram program = relu_beside_host();
  StreamCommand kernel{.stream = 1, .duration_ns = 30, .event = 0, .before = {2, 0, 2}};
  StreamCommand second{.stream = 1, .duration_ns = 40, .event = 1, .before = {3, 0, 3}};
  program.stream_commands = {kernel, second};
  const Step step(program);
  const Work between = then(program.work[0], second.before);
  ASSERT_NE(step.stream_work(0), nullptr);
  second.before = between;
  EXPECT_THAT(step.stream_work(0)->commands, ElementsAre(kernel, second));
  EXPECT_EQ(step.stream_work(0)->after, program.work[1]);
  EXPECT_EQ(step.work()[0], then(then(kernel.before, between), program.work[1]));
  EXPECT_EQ(step.stream_work(1), nullptr);
}

TEST(Step, MapsItsEventsToTheProgramsEvents) {
  ProgramSketch sketch;
  sketch.op_begin("aten::relu");
  sketch.alloc(8);
  sketch.op_end("aten::relu");
  sketch.free(0);
  const Step step(sketch.program());
  EXPECT_THAT(step.program_index(), ElementsAre(1, 3));
}

TEST(Step, BuildsTheRequestsOfTheSavedTensors) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100);
  sketch.save_part(x, 40);
  const Step step(sketch.program());
  ASSERT_EQ(step.requests().size(), 1U);
  EXPECT_EQ(step.requests()[0].storage, x);
  EXPECT_EQ(step.requests()[0].storage_bytes, 100);
  EXPECT_EQ(step.requests()[0].tensor_bytes, 40);
}

TEST(Step, ListsStoragesOlderThanTheStep) {
  ProgramSketch sketch(100);
  sketch.alloc(8);
  sketch.resident(60, StorageRole::kParameter);
  EXPECT_THAT(Step(sketch.program()).residents(), ElementsAre(1));
}

TEST(Step, DerivesTheOrderOfTheFirstUnpacks) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(8);
  const SavedId a = sketch.save(x), b = sketch.save(x), c = sketch.save(x);
  for (const SavedId tensor : {b, a, b}) sketch.unpack(tensor);
  sketch.release(c);
  EXPECT_THAT(Step(sketch.program()).backward_order(), ElementsAre(b, a));
}

TEST(Step, ALayoutBeyondAllMemoryIsNotDense) {
  ProgramSketch sketch;
  const SavedId tensor = sketch.save(sketch.alloc(8));
  StepProgram program = sketch.program();
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  program.saved[tensor].layout = TensorLayout{"float32", {2, kHuge, kHuge}, {1, 2, 2 * kHuge}};
  program.allocator.emplace();
  EXPECT_EQ(Step(program).staging_bytes(tensor), program.saved[tensor].bytes);
}

TEST(Step, ATensorWithoutAStorageTakesNoMemory) {
  ProgramSketch sketch(100);
  const SavedId sparse = sketch.save(-1, 0, Movability::kUnsupportedLayout);
  sketch.node(sparse);
  const Step step(sketch.program());
  EXPECT_EQ(replay(step, preset_policy("keep"), {{1e9, 0}, {1e9, 0}}).metrics.device_peak_bytes, 100);
}

}  // namespace
}  // namespace offprof
