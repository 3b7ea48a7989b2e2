#include "simulator/accuracy.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(MedianOf, IsTheMiddleOrTheMeanOfTwo) {
  EXPECT_EQ(median_of({5, 1, 9}), 5);
  EXPECT_EQ(median_of({3, 7}), 5);
}

TEST(RelativeError, HasTheSignOfThePrediction) {
  EXPECT_DOUBLE_EQ(relative_error({110, {90, 100, 300}}), 0.1);
  EXPECT_DOUBLE_EQ(relative_error({90, {100}}), -0.1);
}

TEST(Noise, ComparesEvenWithOddRounds) {
  EXPECT_DOUBLE_EQ(noise_of({0, {100, 110, 100, 110}}).value(), 10.0 / 105);
  EXPECT_FALSE(noise_of({0, {100}}));
}

TEST(Accuracy, SumsUpErrors) {
  const std::vector<TimedSetting> settings = {{101, {100}}, {97, {100}}, {100, {100}}};
  const Accuracy accuracy = accuracy_of(settings);
  EXPECT_NEAR(accuracy.mean_error, 0.04 / 3, 1e-12);
  EXPECT_NEAR(accuracy.p95_error, 0.03, 1e-12);
  EXPECT_NEAR(accuracy.max_error, 0.03, 1e-12);
  EXPECT_NEAR(accuracy.bias, -0.02 / 3, 1e-12);
  EXPECT_FALSE(accuracy.mean_noise);
}

TEST(Accuracy, NineteenOfTwentyDoNotExceedTheP95) {
  std::vector<TimedSetting> settings(20, {100, {100}});
  settings[7].predicted_ns = 150;
  EXPECT_DOUBLE_EQ(accuracy_of(settings).p95_error, 0);
  settings[8].predicted_ns = 150;
  EXPECT_DOUBLE_EQ(accuracy_of(settings).p95_error, 0.5);
}

TEST(KendallTau, IsOneForTheSameOrderAndMinusOneForTheOther) {
  const std::vector<TimedSetting> same = {{1, {10}}, {2, {20}}, {3, {30}}};
  EXPECT_EQ(accuracy_of(same).kendall_tau, 1);
  EXPECT_EQ(accuracy_of(same).ranked_pairs, 3u);
  const std::vector<TimedSetting> other = {{3, {10}}, {2, {20}}, {1, {30}}};
  EXPECT_EQ(accuracy_of(other).kendall_tau, -1);
}

TEST(KendallTau, CountsAPredictedTieAsNeither) {
  const std::vector<TimedSetting> settings = {{1, {10}}, {1, {20}}, {3, {30}}};
  EXPECT_DOUBLE_EQ(accuracy_of(settings).kendall_tau.value(), 2.0 / 3);
}

TEST(KendallTau, LeavesOutPairsWithinTheNoise) {
  // Each differs from itself by a tenth, and the two by less.
  const std::vector<TimedSetting> settings = {{2, {100, 110}}, {1, {105, 115}}, {9, {200, 220}}};
  const Accuracy accuracy = accuracy_of(settings);
  EXPECT_EQ(accuracy.ranked_pairs, 2u);
  EXPECT_EQ(accuracy.kendall_tau, 1);
}

TEST(KendallTau, IsAbsentWhereNothingDiffers) {
  const std::vector<TimedSetting> settings = {{1, {10}}, {2, {10}}};
  EXPECT_FALSE(accuracy_of(settings).kendall_tau);
}

}  // namespace
}  // namespace offprof
