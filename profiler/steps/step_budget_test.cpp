#include "profiler/steps/step_budget.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(StepBudget, OfAScriptHasAtMostFifteenStepsAndEachKindThatItNeeds) {
  for (const bool calibrates : {false, true}) {
    for (const bool traces : {false, true}) {
      for (const bool searches : {false, true}) {
        SCOPED_TRACE(testing::Message() << calibrates << traces << searches);
        const StepBudget budget =
            budget_of_script({.calibrates = calibrates, .traces = traces, .searches = searches});
        EXPECT_LE(budget.sum(), 15);
        EXPECT_GE(budget.keep, 2);
        EXPECT_GE(budget.measured, 1);
        EXPECT_GE(budget.timeline, 1);
        EXPECT_EQ(budget.search, searches ? 2 : 0);
        EXPECT_EQ(budget.calibration.sum() > 0, calibrates);
        EXPECT_GE(budget.calibration.marked, calibrates ? 2 : 0);
      }
    }
  }
}

TEST(StepBudget, StepsOfAGpuAreTimedWithoutMarks) {
  for (const bool searches : {false, true}) {
    const StepBudget budget = budget_of_script(
        {.calibrates = true, .computes_beside_host = true, .traces = true, .searches = searches});
    EXPECT_LE(budget.sum(), 15);
    EXPECT_EQ(budget.calibration.plain, searches ? 2 : 3);
    EXPECT_GE(budget.calibration.marked, 1);
    EXPECT_GE(budget.calibration.offloaded, 1);
    EXPECT_EQ(budget.measured, 2);  // the first one pins memory
  }
}

}  // namespace
}  // namespace offprof
