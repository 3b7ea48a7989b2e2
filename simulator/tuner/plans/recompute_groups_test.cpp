#include "simulator/tuner/plans/recompute_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/replay/step.h"
#include "tests/support/layered_trace.h"

namespace offprof {
namespace {

using testing::ElementsAre;

/// Recompute steps of the tensor, which read nothing that is saved.
Recomputation recomputation(std::int32_t tensor, Nanoseconds time_ns) {
  Recomputation recomputation{tensor, "aten::op", {}, {}};
  recomputation.use.compute_ns = time_ns;
  return recomputation;
}

/// Returns a step that saves four tensors; all but the last one can be recomputed.
StepProgram sample() {
  StepProgram program =
      layered_trace(
          {{"", 1000, "aten::mul"}, {"", 1000, "aten::mul"}, {"", 500, "aten::silu"}, {"", 700, "aten::mm"}})
          .program;
  program.saved[1].op = program.saved[0].op;
  // Per byte, mul takes 40 ns / 2000 and silu 5 ns / 500.
  program.recomputations = {{recomputation(0, 20), recomputation(1, 20), recomputation(2, 5)}};
  return program;
}

std::vector<RecomputeGroup> groups_of(const StepProgram& program) {
  return recompute_groups(program, movable_versions(Step(program)));
}

TEST(RecomputeGroups, TheCheapestPerByteComesFirst) {
  const std::vector<RecomputeGroup> groups = groups_of(sample());
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].rule.op, "aten::silu");
  EXPECT_THAT(groups[0].versions, ElementsAre(2));
  EXPECT_EQ(groups[1].rule.op, "aten::mul");
  EXPECT_THAT(groups[1].versions, ElementsAre(0, 1));
  EXPECT_EQ(groups[1].bytes, 2000);
  EXPECT_EQ(groups[1].time_ns, 40);
}

TEST(RecomputeGroups, TheRuleOfAGroupRecomputesItsTensorsAndNoOthers) {
  const StepProgram program = sample();
  const Step step(program);
  for (const RecomputeGroup& group : groups_of(program)) {
    Policy policy;
    policy.rules = {group.rule};
    policy.tensors.emplace();
    std::vector<std::size_t> recomputed;
    const StepPlacements placements = step.place(policy);
    for (std::size_t i = 0; i < placements.by_tensor.size(); ++i)
      if (placements.by_tensor[i] && placements.by_tensor[i]->place == Place::kRecompute)
        recomputed.push_back(i);
    EXPECT_EQ(recomputed, group.versions);  // each version has one tensor, of the same number
  }
}

TEST(RecomputeGroups, DistinguishTypesRanksAndSizes) {
  StepProgram program =
      layered_trace({{"", 1000}, {"", 600}, {"", 1000, "aten::mm", "bfloat16"}, {"", 1000}}).program;
  for (SavedTensor& saved : program.saved) saved.op = program.saved[0].op;
  program.saved[3].layout = TensorLayout{"float32", {10, 100}, {100, 1}};
  program.recomputations.emplace();
  for (std::int32_t i = 0; i < 4; ++i) program.recomputations->push_back(recomputation(i, 1));
  EXPECT_EQ(groups_of(program).size(), 4U);
}

TEST(RecomputeGroups, AreNoneWithoutRecomputeSteps) {
  EXPECT_TRUE(groups_of(layered_trace({{"", 1000}}).program).empty());
}

/// A tensor whose storage stays for other reasons is no gain.
TEST(RecomputeGroups, LeaveOutWhatMayNotMove) {
  StepProgram program = sample();
  program.saved[2].movability = Movability::kBuffer;
  EXPECT_EQ(groups_of(program).size(), 1U);
}

TEST(WithoutRecomputed, LeavesTheOtherVersionsAndTheirGaps) {
  const StepProgram program = sample();
  const Step step(program);
  PlanSpace space;
  space.versions = movable_versions(step);
  space.least = least_memory_of(step, space.versions);
  ASSERT_EQ(space.least.gaps.size(), 4U);
  const PlanSpace left = without_recomputed(space, {groups_of(program)[1]});  // mul: versions 0 and 1
  ASSERT_EQ(left.versions.size(), 2U);
  EXPECT_EQ(left.versions[0].bytes, 500);
  EXPECT_EQ(left.versions[1].bytes, 700);
  std::vector<std::size_t> versions;
  for (const LeastMemory::Gap& gap : left.least.gaps) versions.push_back(gap.version);
  EXPECT_THAT(versions, testing::UnorderedElementsAre(0, 1));
  EXPECT_EQ(left.least.after_event, space.least.after_event);
}

}  // namespace
}  // namespace offprof
