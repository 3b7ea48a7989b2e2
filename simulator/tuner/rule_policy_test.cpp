#include "simulator/tuner/rule_policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/tune_inputs.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Link kLink{{1e9, 10}, {1e9, 10}};

std::int32_t add_name(StepProgram& program, const std::string& name) {
  program.names.push_back(name);
  return static_cast<std::int32_t>(program.names.size() - 1);
}

/// Eight layers `layers.N.mlp`, each of which saves one tensor, in turn by `a` and by `b*`.
class RulePolicyTest : public ::testing::Test {
 protected:
  RulePolicyTest() {
    trace_.program = ChainSketch::program(8, 100);
    StepProgram& program = trace_.program;
    const std::int32_t ops[] = {add_name(program, "a"), add_name(program, "b*")};
    for (std::size_t i = 0; i < program.saved.size(); ++i) {
      program.saved[i].op = ops[i % 2];
      program.saved[i].module = add_name(program, "layers." + std::to_string(i) + ".mlp");
    }
  }

  /// Returns the policy near a plan, for the goal of being as fast as possible within the plan's peak.
  RulePolicySearch search(std::vector<std::int32_t> tensors, Bytes more_bytes = 0) {
    const TraceSteps steps(trace_);
    plan_.policy.tensors = std::move(tensors);
    plan_.predicted = steps.predict(plan_.policy, kLink);
    TuneGoal goal;
    goal.memory_budget_bytes = *plan_.predicted.device_peak_bytes + more_bytes;
    const TuneInputs inputs = make_tune_inputs(steps, kLink, goal);
    const GoalOrder order(goal, steps, *steps.predict(preset_policy("keep"), kLink).step_time_ns);
    return search_rule_policies(inputs, order, plan_, {});
  }

  Trace trace_;
  Candidate plan_;
};

TEST_F(RulePolicyTest, OneRuleKeepsWhatAnOperatorSavesInAllLayers) {
  const RulePolicySearch found = search({0, 2, 4, 6});
  EXPECT_EQ(found.best.predicted, plan_.predicted);
  EXPECT_FALSE(found.best.policy.tensors);
  ASSERT_EQ(found.best.policy.rules.size(), 1U);
  EXPECT_EQ(found.best.policy.rules[0].op, "b[*]");
  EXPECT_EQ(found.best.policy.rules[0].module, "layers.*.mlp");
  EXPECT_EQ(found.best.policy.rules[0].placement, Placement{});
}

TEST_F(RulePolicyTest, RulesNameModulesWhereLayersDiffer) {
  const RulePolicySearch found = search({0, 2, 4, 5, 6, 7});
  EXPECT_EQ(found.best.predicted, plan_.predicted);
  ASSERT_EQ(found.best.policy.rules.size(), 2U);
  EXPECT_EQ(found.best.policy.rules[0].module, "layers.1.mlp");
  EXPECT_EQ(found.best.policy.rules[1].module, "layers.3.mlp");
}

TEST_F(RulePolicyTest, RulesNameSizesWhereAModuleDiffers) {
  StepProgram& program = trace_.program;
  for (SavedTensor& saved : program.saved) {
    saved.op = program.saved[0].op;
    saved.module = program.saved[0].module;
  }
  program.storages[program.saved[3].storage].bytes = program.saved[3].bytes = 300;
  const RulePolicySearch found = search({0, 1, 2, 4, 5, 6, 7});
  EXPECT_EQ(found.best.predicted, plan_.predicted);
  ASSERT_EQ(found.best.policy.rules.size(), 1U);
  EXPECT_EQ(found.best.policy.rules[0].min_bytes, 300);
  EXPECT_EQ(found.best.policy.rules[0].max_bytes, 300);
}

TEST_F(RulePolicyTest, RulesNameNoModuleWhereTheTraceHasNone) {
  for (SavedTensor& saved : trace_.program.saved) saved.module = -1;
  const RulePolicySearch found = search({0, 2, 4, 6});
  ASSERT_EQ(found.best.policy.rules.size(), 1U);
  EXPECT_EQ(found.best.policy.rules[0].module, std::nullopt);
  EXPECT_EQ(found.best.predicted, plan_.predicted);
}

TEST_F(RulePolicyTest, OffloadsAGroupThatAPlanDividesIfTheGoalNeedsIt) {
  for (SavedTensor& saved : trace_.program.saved) {
    saved.op = trace_.program.saved[0].op;
    saved.module = trace_.program.saved[0].module;
  }
  const RulePolicySearch found = search({0, 1, 2, 3});
  EXPECT_TRUE(found.best.policy.rules.empty());
  EXPECT_LE(*found.best.predicted.device_peak_bytes, *plan_.predicted.device_peak_bytes);
}

TEST_F(RulePolicyTest, KeepsAGroupThatAPlanDividesIfTheGoalAllowsIt) {
  for (SavedTensor& saved : trace_.program.saved) {
    saved.op = trace_.program.saved[0].op;
    saved.module = trace_.program.saved[0].module;
  }
  const RulePolicySearch found = search({0, 1, 2, 3}, 10'000);
  EXPECT_EQ(found.best.policy.rules.size(), 1U);
  EXPECT_EQ(found.best.predicted.d2h_bytes, 0);
}

TEST_F(RulePolicyTest, APlanOfNothingHasAPolicyThatOffloadsNothing) {
  const RulePolicySearch found = search({});
  EXPECT_EQ(found.best.policy.threshold_bytes, std::nullopt);
  EXPECT_EQ(found.best.predicted.d2h_bytes, 0);
}

}  // namespace
}  // namespace offprof
