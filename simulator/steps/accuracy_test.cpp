#include "simulator/steps/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace offprof {
namespace {

/// Returns settings measured in `rounds` rounds, each time off by up to `noise`, and predicted with an error
/// of `bias`. The longest takes twice as long as the shortest.
std::vector<TimedSetting> noisy(std::size_t count, std::size_t rounds, double noise, double bias) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> off(-noise, noise);
  std::vector<TimedSetting> settings;
  for (std::size_t i = 0; i < count; ++i) {
    const double time = 1e9 * (1 + static_cast<double>(i) / static_cast<double>(count));
    TimedSetting& setting = settings.emplace_back();
    setting.predicted_ns = std::llround(time * (1 + bias));
    for (std::size_t round = 0; round < rounds; ++round)
      setting.measured_ns.push_back(std::llround(time * (1 + off(random))));
  }
  return settings;
}

TEST(RelativeError, HasTheSignOfThePrediction) {
  EXPECT_DOUBLE_EQ(relative_error({110, {90, 100, 300}}), 0.1);
  EXPECT_DOUBLE_EQ(relative_error({90, {100}}), -0.1);
  EXPECT_EQ(relative_error({0, {0}}), 0);
}

TEST(Noise, ComparesEvenWithOddRounds) {
  EXPECT_DOUBLE_EQ(noise_of({0, {100, 110, 100, 110}}).value(), 10.0 / 105);
  EXPECT_FALSE(noise_of({0, {100}}));
}

TEST(Accuracy, SummarizesErrors) {
  const std::vector<TimedSetting> settings = {{101, {100}}, {97, {100}}, {100, {100}}};
  const Accuracy accuracy = accuracy_of(settings, 1);
  EXPECT_NEAR(accuracy.mean_error, 0.04 / 3, 1e-12);
  EXPECT_NEAR(accuracy.p95_error, 0.03, 1e-12);
  EXPECT_NEAR(accuracy.max_error, 0.03, 1e-12);
  EXPECT_NEAR(accuracy.bias, -0.02 / 3, 1e-12);
  EXPECT_FALSE(accuracy.mean_noise);
}

TEST(Accuracy, P95IsNotExceededByNineteenOfTwentyErrors) {
  std::vector<TimedSetting> settings(20, {100, {100}});
  settings[7].predicted_ns = 150;
  EXPECT_DOUBLE_EQ(accuracy_of(settings, 1).p95_error, 0);
  settings[8].predicted_ns = 150;
  EXPECT_DOUBLE_EQ(accuracy_of(settings, 1).p95_error, 0.5);
}

TEST(KendallTau, IsOneForTheSameOrderAndMinusOneForTheOpposite) {
  const std::vector<TimedSetting> same = {{1, {10}}, {2, {20}}, {3, {30}}};
  EXPECT_EQ(accuracy_of(same, 1).kendall_tau, 1);
  EXPECT_EQ(accuracy_of(same, 1).ranked_pairs, 3u);
  const std::vector<TimedSetting> other = {{3, {10}}, {2, {20}}, {1, {30}}};
  EXPECT_EQ(accuracy_of(other, 1).kendall_tau, -1);
}

TEST(KendallTau, CountsAPredictedTieAsNeither) {
  const std::vector<TimedSetting> settings = {{1, {10}}, {1, {20}}, {3, {30}}};
  EXPECT_DOUBLE_EQ(accuracy_of(settings, 1).kendall_tau.value(), 2.0 / 3);
}

TEST(KendallTau, ExcludesPairsWhoseOrderIsNoise) {
  // The first two settings are in this order once, and in the opposite order once.
  const std::vector<TimedSetting> settings = {{2, {100, 110}}, {1, {105, 106}}, {9, {200, 220}}};
  const Accuracy accuracy = accuracy_of(settings, 2);
  EXPECT_EQ(accuracy.ranked_pairs, 2u);
  EXPECT_EQ(accuracy.kendall_tau, 1);
}

TEST(KendallTau, RanksAllOtherPairsIfTwoSettingsAreNoisy) {
  std::vector<TimedSetting> settings = noisy(30, 7, 0.002, 0);
  settings[3].measured_ns = {1000, 1400, 1000, 1400, 1000, 1400, 1000};
  settings[9].measured_ns = {1400, 1000, 1400, 1000, 1400, 1000, 1400};
  EXPECT_GE(accuracy_of(settings, 7).ranked_pairs, 28u * 27 / 2);
}

TEST(KendallTau, ExcludesPairsThatDifferNoMoreThanTwoRunsOfOneSetting) {
  // Two runs of either setting differ by two percent; the order is the same in each round.
  const auto settings = [](Nanoseconds longer) {
    return std::vector<TimedSetting>{{1, {100, 102, 100, 102}},
                                     {2, {longer, longer + 2, longer, longer + 2}}};
  };
  EXPECT_EQ(accuracy_of(settings(106), 4).ranked_pairs, 0u);
  EXPECT_EQ(accuracy_of(settings(110), 4).ranked_pairs, 1u);
}

TEST(KendallTau, ExcludesPairsThatDifferNoMoreThanTwoRunsOfTheNoisierSetting) {
  // The last setting is the slowest in each round, but by how much is not known.
  const std::vector<TimedSetting> settings = {
      {1, {100, 101, 100, 101}}, {1, {110, 111, 110, 111}}, {0, {120, 150, 120, 150}}};
  const Accuracy accuracy = accuracy_of(settings, 4);
  EXPECT_EQ(accuracy.ranked_pairs, 1u);
  EXPECT_EQ(accuracy.kendall_tau, 0) << "predicted alike";
}

TEST(KendallTau, IsAbsentIfNothingDiffers) {
  const std::vector<TimedSetting> settings = {{1, {10}}, {2, {10}}};
  EXPECT_FALSE(accuracy_of(settings, 1).kendall_tau);
}

TEST(Ranges, AreAbsentForOneRound) {
  const Accuracy accuracy = accuracy_of(noisy(5, 1, 0.1, 0), 1);
  EXPECT_FALSE(accuracy.mean_range);
  EXPECT_FALSE(accuracy.p95_range);
  EXPECT_FALSE(accuracy.tau_range);
}

TEST(Ranges, EqualTheFiguresWithoutNoise) {
  const Accuracy accuracy = accuracy_of(noisy(10, 3, 0, 0.04), 3);
  EXPECT_NEAR(accuracy.mean_range->low, accuracy.mean_error, 1e-12);
  EXPECT_NEAR(accuracy.p95_range->high, accuracy.p95_error, 1e-12);
  EXPECT_EQ(accuracy.tau_range, (Range{1, 1}));
}

TEST(Ranges, DistinguishABiasFromNoise) {
  // Half-differences of about 2.6 %, which do not explain a bias of 4.5 %.
  const Accuracy biased = accuracy_of(noisy(30, 7, 0.05, -0.045), 7);
  EXPECT_GT(*biased.mean_noise, 0.02);
  EXPECT_GT(biased.mean_error, 0.04);
  EXPECT_GT(biased.mean_range->low, 0.035);
}

TEST(Ranges, ReachBelowTheNoisyErrorOfARightPrediction) {
  const Accuracy right = accuracy_of(noisy(30, 7, 0.15, 0), 7);
  EXPECT_GT(right.mean_error, 0.03);
  EXPECT_LT(right.mean_range->low, 0.03);
  EXPECT_LT(right.p95_range->low, 0.08);
}

TEST(Ranges, IncludeTheNoiseOfTheReference) {
  const auto settings = noisy(10, 5, 0, 0.04);
  const TimedSetting reference = {0, {100, 104, 108, 96, 92, 100, 100, 100, 102, 98}};
  const Accuracy accuracy = accuracy_of(settings, 5, &reference);
  EXPECT_DOUBLE_EQ(accuracy.mean_error, accuracy_of(settings, 5).mean_error);
  EXPECT_LT(accuracy.mean_range->low, 0.035);
}

TEST(Ranges, AreDeterministic) {
  const auto settings = noisy(10, 5, 0.1, 0.02);
  EXPECT_EQ(accuracy_of(settings, 5).p95_range, accuracy_of(settings, 5).p95_range);
}

}  // namespace
}  // namespace offprof
