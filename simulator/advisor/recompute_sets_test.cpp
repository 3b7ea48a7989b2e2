#include "simulator/advisor/recompute_sets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

std::vector<std::string> ops_of(const std::vector<PolicyRule>& rules) {
  std::vector<std::string> ops;
  for (const PolicyRule& rule : rules) ops.push_back(*rule.op);
  return ops;
}

TEST(RecomputeSets, AddTheCheapestGroupPerByteFirst) {
  StepProgram program =
      layered_trace({{"", 1000, "aten::mul"}, {"", 1000, "aten::mul"}, {"", 500, "aten::silu"}}).program;
  program.saved[1].op = program.saved[0].op;
  // Per byte, mul takes 40 ns / 2000 and silu 5 ns / 500.
  program.recomputations = {{recomputation(0, 20), recomputation(1, 20), recomputation(2, 5)}};
  const auto sets = recompute_sets(program);
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_TRUE(sets[0].empty());
  EXPECT_THAT(ops_of(sets[1]), ElementsAre("aten::silu"));
  EXPECT_THAT(ops_of(sets[2]), ElementsAre("aten::silu", "aten::mul"));
}

TEST(RecomputeSets, HaveOneRulePerStorageSize) {
  StepProgram program = layered_trace({{"", 1000}, {"", 600}}).program;
  program.recomputations = {{recomputation(0, 1), recomputation(1, 1)}};
  const auto sets = recompute_sets(program);
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_EQ(sets[1][0].min_bytes, 1000);
  EXPECT_EQ(sets[1][0].max_bytes, 1000);
  EXPECT_EQ(sets[1][0].placement.place, Place::kRecompute);
  EXPECT_EQ(sets[2][1].min_bytes, 600);
}

TEST(RecomputeSets, LeaveOutGroupsWithLittleMemory) {
  StepProgram program = layered_trace({{"", 1000, "aten::mul"}, {"", 10, "aten::rsqrt"}}).program;
  program.recomputations = {{recomputation(0, 1), recomputation(1, 1)}};
  const auto sets = recompute_sets(program);
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_THAT(ops_of(sets[1]), ElementsAre("aten::mul"));
}

TEST(RecomputeSets, AreEmptyWithoutRecomputeSteps) {
  const auto sets = recompute_sets(layered_trace({{"", 1000}}).program);
  ASSERT_EQ(sets.size(), 1U);
  EXPECT_TRUE(sets[0].empty());
}

}  // namespace
}  // namespace offprof
