#include "simulator/report/step_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

StepRecord record(const StepProgram& program, const Policy& policy = preset_policy("keep"),
                  const Link& link = kAnyLink) {
  return record_step(program, Step(program), policy, link);
}

Policy offload_all() {
  return preset_policy("offload");
}

std::vector<MemoryKind> kinds_of(const StepRecord& record) {
  std::vector<MemoryKind> kinds;
  for (const MemoryLife& life : record.lives) kinds.push_back(life.kind);
  return kinds;
}

TEST(StepRecord, HasALifeForEachAllocation) {
  ProgramSketch sketch(10);
  sketch.phase("forward");
  sketch.compute(5);
  const std::int32_t first = sketch.alloc(100);
  sketch.compute(7);
  sketch.free(first);
  const StepRecord made = record(sketch.program());
  ASSERT_THAT(made.lives, SizeIs(1));
  EXPECT_EQ(made.lives[0].bytes, 100);
  EXPECT_EQ(made.lives[0].kind, MemoryKind::kTemporary);
  ASSERT_THAT(made.changes, SizeIs(2));
  EXPECT_TRUE(made.changes[0].is_begin);
  EXPECT_EQ(made.changes[0].at_ns, 5);
  EXPECT_FALSE(made.changes[1].is_begin);
  EXPECT_EQ(made.changes[1].at_ns, 12);
  EXPECT_EQ(made.resident_bytes, 10);
  EXPECT_EQ(peak_of(made), 110);
}

TEST(StepRecord, LeavesOutAllocationsWithoutBytes) {
  ProgramSketch sketch;
  sketch.free(sketch.alloc(0));
  EXPECT_THAT(record(sketch.program()).lives, IsEmpty());
}

TEST(StepRecord, KnowsTheOperatorThePhaseAndTheModuleOfAnAllocation) {
  ProgramSketch sketch;
  sketch.phase("forward");
  sketch.op_begin("aten::mm");
  const std::int32_t scratch = sketch.alloc(8);
  const std::int32_t output = sketch.alloc(16);
  sketch.save(output);
  sketch.op_end("aten::mm");
  sketch.free(scratch);
  StepProgram program = sketch.program();
  program.names.insert(program.names.end(), {"layers.0", "model.py:7"});
  program.saved[0].module = static_cast<std::int32_t>(program.names.size() - 2);
  program.saved[0].line = static_cast<std::int32_t>(program.names.size() - 1);
  const StepRecord made = record(program);
  ASSERT_THAT(made.lives, SizeIs(2));
  for (const MemoryLife& life : made.lives) {
    EXPECT_EQ(program.names[life.origin.op], "aten::mm");
    EXPECT_EQ(program.names[life.origin.module], "layers.0");
    EXPECT_EQ(program.names[life.origin.line], "model.py:7");
  }
  EXPECT_THAT(kinds_of(made), ElementsAre(MemoryKind::kTemporary, MemoryKind::kSaved));
  EXPECT_EQ(made.lives[0].tensor, -1);
  EXPECT_EQ(made.lives[1].tensor, 0);
}

TEST(StepRecord, CallsBackwardsMemoryThatOutlivesItAGradient) {
  ProgramSketch sketch;
  sketch.phase("forward");
  const SavedId tensor = sketch.save(sketch.alloc(8));
  sketch.free(0);
  sketch.phase("backward");
  const std::int32_t gradient = sketch.alloc(16);
  const std::int32_t scratch = sketch.alloc(32);
  sketch.node(tensor);
  sketch.free(scratch);
  sketch.backward_end();
  sketch.phase("optimizer");
  sketch.free(sketch.alloc(64));
  sketch.free(gradient);
  EXPECT_THAT(
      kinds_of(record(sketch.program())),
      ElementsAre(MemoryKind::kSaved, MemoryKind::kGradient, MemoryKind::kTemporary, MemoryKind::kOptimizer));
}

TEST(StepRecord, EndsTheLifeOfAnOffloadedTensorAtItsDropAndBeginsANewOneAtItsReload) {
  const StepProgram program = ChainSketch::program(3, 100);
  const StepRecord made = record(program, offload_all());
  EXPECT_THAT(made.lives, Contains(Field(&MemoryLife::kind, MemoryKind::kRestored)).Times(3));
  for (const MemoryLife& life : made.lives) EXPECT_EQ(life.bytes, 100);
  EXPECT_THAT(made.copies, SizeIs(6));
}

TEST(StepRecord, CountsAResidentThatTheStepFreesAsALifeFromTheBeginning) {
  ProgramSketch sketch(100);
  const std::int32_t old = sketch.resident(30);
  sketch.compute(4);
  sketch.free(old);
  const StepRecord made = record(sketch.program());
  EXPECT_EQ(made.resident_bytes, 70);
  EXPECT_THAT(kinds_of(made), ElementsAre(MemoryKind::kResident));
  ASSERT_THAT(made.changes, SizeIs(2));
  EXPECT_EQ(made.changes[0].at_ns, 0);
  EXPECT_EQ(made.changes[1].at_ns, 4);
  EXPECT_EQ(peak_of(made), 100);
}

TEST(StepRecord, HasTheOutermostOperatorsWithTheirPhases) {
  const StepProgram program = ChainSketch::program(2, 100);
  const StepRecord made = record(program);
  std::vector<std::string> names, phases;
  for (const RecordedOp& op : made.ops) {
    names.push_back(program.names[op.origin.op]);
    phases.push_back(program.names[op.phase]);
  }
  EXPECT_THAT(names, ElementsAre("layer", "layer", "LayerBackward0", "LayerBackward0"));
  EXPECT_THAT(phases, ElementsAre("forward", "forward", "backward", "backward"));
  EXPECT_EQ(made.ops[1].begin_ns, made.ops[0].end_ns);
  EXPECT_THAT(made.phases,
              ElementsAre(Field(&RecordedPhase::name, "forward"), Field(&RecordedPhase::name, "backward"),
                          Field(&RecordedPhase::name, "optimizer")));
}

TEST(StepRecord, HasTheStallsOfTheReplay) {
  const Link slow = {{1e9, 0}, {1e9, 0}};
  const StepProgram program = ChainSketch::program(3, 1000);
  const StepRecord made = record(program, offload_all(), slow);
  Nanoseconds sum = 0;
  for (const Stall& stall : made.stalls) sum += stall.duration_ns;
  EXPECT_GT(sum, 0);
  EXPECT_EQ(sum, made.prediction.metrics.exposed_ns);
}

/// The lives of the page are all that its charts know, so their sum must be the replay's own figure.
RC_GTEST_PROP(StepRecordProperty, LivesReachTheDevicePeakToTheByte, ()) {
  constexpr Bytes kMostBytes = 1000;
  const StepProgram program = random_chain(20, kMostBytes);
  const auto scheduler = *random_scheduler();
  const StepRecord made = record(program, *random_policy(scheduler, kMostBytes));
  RC_ASSERT(peak_of(made) == *made.prediction.metrics.device_peak_bytes);
}

}  // namespace
}  // namespace offprof
