#include "traces/analysis/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

StepSummary figures_with(Bytes device_peak) {
  StepSummary figures;
  figures.metrics.device_peak_bytes = device_peak;
  return figures;
}

TEST(Diff, IsTheNewValueMinusTheOld) {
  const Diff diff = compare(figures_with(200), figures_with(250));
  ASSERT_THAT(diff.metrics, SizeIs(1));
  EXPECT_EQ(diff.metrics[0].key, "device_peak_bytes");
  EXPECT_EQ(diff.metrics[0].difference(), 50);
  EXPECT_EQ(diff.metrics[0].percent(), 25);
}

TEST(Diff, HasNoPercentageForABaseOfZero) {
  EXPECT_EQ(compare(figures_with(0), figures_with(5)).metrics[0].percent(), std::nullopt);
  EXPECT_EQ(compare(figures_with(0), figures_with(0)).metrics[0].percent(), 0);
}

TEST(Diff, KeepsAFigureThatOnlyOneSideHas) {
  const Diff diff = compare(figures_with(1), StepSummary{});
  ASSERT_THAT(diff.metrics, SizeIs(1));
  EXPECT_EQ(diff.metrics[0].now, std::nullopt);
  EXPECT_EQ(diff.metrics[0].difference(), std::nullopt);
}

TEST(Diff, ListsOperatorsByTheSizeOfTheirDifference) {
  StepSummary base, now;
  base.saved_by_op = {{"same", {1, 10}}, {"grows", {1, 10}}, {"goes", {2, 90}}};
  now.saved_by_op = {{"same", {1, 10}}, {"grows", {3, 40}}, {"comes", {1, 50}}};
  const auto ops = op_differences(base, now);
  ASSERT_THAT(ops, SizeIs(3));
  EXPECT_EQ(ops[0].op, "goes");
  EXPECT_EQ(ops[0].difference(), -90);
  EXPECT_EQ(ops[1].op, "comes");
  EXPECT_EQ(ops[2].op, "grows");
}

TEST(Diff, ListsNoOperatorsIfASideHasNone) {
  StepSummary base;
  base.saved_by_op = {{"op", {1, 10}}};
  EXPECT_THAT(op_differences(base, StepSummary{}), IsEmpty());
}

}  // namespace
}  // namespace offprof
