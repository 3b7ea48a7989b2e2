#include "profiler/recording/step_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiler/recorder/pass_sketch.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::SizeIs;

constexpr int kWanted = 2;

/// A step that saves one tensor of that size.
StepResult step_of(Bytes bytes) {
  PassSketch sketch;
  sketch.phase("forward").op_begin("aten::relu").alloc(1, bytes).pack(1, -1).op_end();
  sketch.phase("backward").unpack(0).node_end().release(0).free(1).backward_end();
  StepResult step;
  step.recording = sketch.finish();
  return step;
}

/// Adds steps of these sizes.
StepGroups groups_of(const ShapeChoice& choice, std::initializer_list<Bytes> sizes) {
  StepGroups groups(choice, kWanted);
  for (const Bytes bytes : sizes) groups.add(step_of(bytes));
  return groups;
}

testing::Matcher<StepGroup> group(std::int64_t steps, Bytes peak) {
  return AllOf(Field(&StepGroup::steps, steps), Field(&StepGroup::peak_bytes, peak));
}

TEST(StepGroups, ChoosesTheFirstKindOfStepThatWasSeenOftenEnough) {
  StepGroups groups = groups_of({}, {96, 64, 128});
  EXPECT_FALSE(groups.choose());
  groups.add(step_of(64));
  const auto chosen = groups.choose();
  ASSERT_TRUE(chosen);
  ASSERT_THAT(*chosen, SizeIs(kWanted));
  EXPECT_EQ(chosen->front().recording.events[2].value, 64);
}

TEST(StepGroups, DescribesTheMostFrequentKindFirst) {
  const StepGroups groups = groups_of({}, {96, 64, 96, 128, 96, 64});
  EXPECT_THAT(groups.summary(), ElementsAre(group(3, 96), group(2, 64), group(1, 128)));
}

TEST(StepGroups, TellWhetherTheStepsHaveOtherShapes) {
  EXPECT_TRUE(groups_of({}, {96, 96, 64}).differ_in_shapes());
  EXPECT_FALSE(groups_of({}, {96, 96}).differ_in_shapes());
}

TEST(StepGroups, AnEvaluationHasOtherShapesIfItsLargeBlocksAreOthers) {
  const auto groups_with = [](Bytes of_evaluation) {
    StepGroups groups({}, kWanted);
    PassSketch evaluating;
    evaluating.phase("forward").op_begin("aten::mm").alloc(9, of_evaluation).free(9).op_end();
    evaluating.op_begin("aten::relu").alloc(1, 4 * kMiB).pack(1, -1).op_end();
    evaluating.phase("backward").unpack(0).node_end().release(0).free(1).backward_end();
    StepResult step;
    step.recording = evaluating.finish();
    groups.add(std::move(step));
    for (int i = 0; i < kWanted; ++i) groups.add(step_of(4 * kMiB));
    EXPECT_TRUE(groups.choose());
    return groups;
  };
  EXPECT_TRUE(groups_with(8 * kMiB).differ_in_shapes());
  EXPECT_FALSE(groups_with(4 * kMiB).differ_in_shapes());
  EXPECT_FALSE(groups_with(512).differ_in_shapes());
}

TEST(StepGroups, AStepThatAllocatesWhatStaysHasNoOtherShape) {
  PassSketch with_buckets;
  with_buckets.phase("forward").op_begin("aten::relu").alloc(1, 4 * kMiB).pack(1, -1).op_end();
  with_buckets.phase("backward").unpack(0).node_end().alloc(9, 25 * kMiB).release(0).free(1).backward_end();
  StepResult first;
  first.recording = with_buckets.finish();
  StepGroups groups({}, kWanted);
  groups.add(std::move(first));
  for (int i = 0; i < kWanted; ++i) groups.add(step_of(4 * kMiB));
  EXPECT_TRUE(groups.choose());
  EXPECT_EQ(groups.summary().size(), 2);
  EXPECT_FALSE(groups.differ_in_shapes());
}

TEST(StepGroups, AStepThatCompilesHasNoOtherShape) {
  StepGroups groups = groups_of({}, {96});
  StepResult compiling = step_of(96);
  compiling.recording.saved.emplace_back().saved.bytes = 50;  // a fake tensor
  compiling.recording.escaped.push_back(0);
  groups.add(std::move(compiling));
  EXPECT_EQ(groups.summary().size(), 2);
  EXPECT_FALSE(groups.differ_in_shapes());
}

TEST(StepGroups, ChoosesTheLargestAfterTheObservedSteps) {
  StepGroups groups({.is_largest = true}, kWanted);
  while (groups.steps() < kObservedSteps - 2) groups.add(step_of(64));
  EXPECT_FALSE(groups.choose());
  groups.add(step_of(128));
  EXPECT_FALSE(groups.choose());
  groups.add(step_of(128));
  const auto chosen = groups.choose();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().recording.events[2].value, 128);
  EXPECT_TRUE(groups.summary()[1].is_recorded);
}

TEST(StepGroups, ChoosesByRank) {
  StepGroups groups({.rank = 2}, kWanted);
  while (groups.steps() < kObservedSteps) groups.add(step_of(groups.steps() % 3 == 0 ? 128 : 64));
  const auto chosen = groups.choose();
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->front().recording.events[2].value, 128);
}

TEST(ParseShape, AcceptsTheChoicesAndNothingElse) {
  EXPECT_TRUE(parse_shape("largest").is_largest);
  EXPECT_EQ(parse_shape("3").rank, 3);
  EXPECT_EQ(parse_shape("most-frequent").rank, 1);
  for (const char* text : {"", "0", "-1", "2x", "smallest"}) EXPECT_THROW(parse_shape(text), Error) << text;
}

}  // namespace
}  // namespace offprof
