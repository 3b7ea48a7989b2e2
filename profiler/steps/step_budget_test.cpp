#include "profiler/steps/step_budget.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(StepBudget, OfAScriptHasAtMostFifteenStepsAndEachKindThatItNeeds) {
  for (const bool calibrates : {false, true}) {
    for (const bool traces : {false, true}) {
      for (const bool searches : {false, true}) {
        SCOPED_TRACE(testing::Message() << calibrates << traces << searches);
        const StepBudget budget = budget_of_script({calibrates, traces, searches});
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

}  // namespace
}  // namespace offprof
