#include "simulator/policy_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "simulator/sample_program.h"

namespace offprof {
namespace {

/// Saves tensors of many sizes and uses them the other way round.
Step varied_step() {
  constexpr Bytes kSmallest = 1000;
  constexpr int kTensors = 40;
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (int i = 0; i < kTensors; ++i) saved.push_back(sketch.save(sketch.alloc(kSmallest * (1 + i % 7))));
  while (!saved.empty()) {
    sketch.node(saved.back());
    sketch.release(saved.back());
    saved.pop_back();
  }
  return Step(sketch.program());
}

template <typename Get>
std::size_t distinct(const std::vector<Policy>& policies, Get get) {
  std::set<decltype(get(policies.front()))> values;
  for (const Policy& policy : policies) values.insert(get(policy));
  return values.size();
}

TEST(SpanningPolicies, BeginWithThePresets) {
  const auto policies = spanning_policies(varied_step(), 3);
  EXPECT_EQ(policies, (std::vector{preset_policy("keep"), preset_policy("offload"), preset_policy("trl")}));
}

TEST(SpanningPolicies, SpanEveryAxis) {
  const auto policies = spanning_policies(varied_step(), 40);
  ASSERT_EQ(policies.size(), 40u);
  EXPECT_EQ(distinct(policies, [](const Policy& policy) { return policy.threshold_bytes.value_or(-1); }),
            9u);  // none, 0, TRL's, and every size
  EXPECT_GE(distinct(policies, [](const Policy& policy) { return policy.stash_count.value_or(-1); }), 12u);
  EXPECT_GE(distinct(policies, [](const Policy& policy) { return policy.prefetch_bytes; }), 12u);
  EXPECT_GE(std::ranges::count_if(policies, [](const Policy& policy) { return policy.tensors.has_value(); }),
            9);
}

TEST(SpanningPolicies, AreTheSameEveryTime) {
  EXPECT_EQ(spanning_policies(varied_step(), 30), spanning_policies(varied_step(), 30));
}

TEST(SpanningPolicies, AreKeepAloneWhereNothingMayMove) {
  EXPECT_EQ(spanning_policies(Step(ProgramSketch().program()), 30), (std::vector{preset_policy("keep")}));
}

}  // namespace
}  // namespace offprof
