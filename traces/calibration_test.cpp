#include "traces/calibration.h"

#include <gmock/gmock.h>

#include "traces/calibration_io.h"
#include "traces/error.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Measured exactly(Nanoseconds value) {
  return {value, value, value};
}

Calibration sample() {
  Calibration calibration;
  calibration.d2h = {{64, exactly(1000)}, {1'000'064, exactly(101'000)}};
  calibration.h2d = {{64, exactly(2000)}, {1'000'064, {52'000, 51'000, 60'000}}};
  calibration.start = exactly(30);
  calibration.command = exactly(4);
  calibration.event = exactly(2);
  calibration.hook = exactly(1);
  calibration.standstills = {{100, exactly(10)}, {300, exactly(8)}, {500, exactly(40)}};
  calibration.slowdown_per_mib = exactly(kMiB / 4);
  calibration.reload_per_mib = exactly(kMiB / 8);
  calibration.step = exactly(1'000'000);
  return calibration;
}

TEST(SummarizeMeasured, IsMedianAndQuartiles) {
  EXPECT_EQ(summarize_measured({50, 10, 30, 20, 40}), (Measured{30, 20, 40}));
  EXPECT_EQ(summarize_measured({7}), (Measured{7, 7, 7}));
}

TEST(Measured, MedianOfAnEvenNumberIsBetweenTheTwoInTheMiddle) {
  EXPECT_EQ(summarize_measured({10, 40, 20, 30}).median_ns, 25);
  EXPECT_EQ(summarize_measured({7, 3}).median_ns, 5);
}

TEST(Measured, SpreadsByItsQuartiles) {
  EXPECT_DOUBLE_EQ((Measured{100, 90, 120}).relative_spread(), 0.3);
  EXPECT_DOUBLE_EQ(Measured{}.relative_spread(), 0);
}

TEST(LinkOf, TakesLatencyFromSmallAndBandwidthFromLargeCopies) {
  const Link link = link_of(sample());
  EXPECT_EQ(link.d2h, (LinkDirection{1e10, 1000, 30}));
  EXPECT_EQ(link.h2d, (LinkDirection{2e10, 2000, 30}));
  EXPECT_EQ(link.launch_ns, 4);
}

TEST(LinkOf, TakesTheBandwidthOfAStepsCopiesWhereItWasMeasured) {
  Calibration calibration = sample();
  calibration.copy_in_per_mib = exactly(1'000'000);
  const Link link = link_of(calibration);
  EXPECT_EQ(link.d2h, (LinkDirection{1e10, 1000, 30}));
  EXPECT_EQ(link.h2d, (LinkDirection{1e3 * kMiB, 2000, 30}));
}

TEST(EngineCosts, LoseMoreAfterLongerStandstills) {
  const EngineCosts costs = costs_of(sample());
  EXPECT_EQ(costs.lost_after(0), 0);
  EXPECT_EQ(costs.lost_after(50), 5);
  EXPECT_EQ(costs.lost_after(100), 10);
  EXPECT_EQ(costs.lost_after(200), 10);  // what stood longer never loses less
  EXPECT_EQ(costs.lost_after(400), 25);
  EXPECT_EQ(costs.lost_after(9000), 40);
}

TEST(EngineCosts, AreTheMedians) {
  const EngineCosts costs = costs_of(sample());
  EXPECT_EQ(costs.hook_ns, 1);
  EXPECT_EQ(costs.event_ns, 2);
  EXPECT_DOUBLE_EQ(costs.slowdown_ns_per_byte, 0.25);
  EXPECT_DOUBLE_EQ(costs.reload_ns_per_byte, 0.125);
}

TEST(EngineCosts, AreNothingWhereAQuarterOfTheMeasurementsShowNothing) {
  Calibration calibration = sample();
  calibration.slowdown_per_mib.low_ns = calibration.reload_per_mib.low_ns = 0;
  EXPECT_EQ(costs_of(calibration).slowdown_ns_per_byte, 0);
  EXPECT_EQ(costs_of(calibration).reload_ns_per_byte, 0);
}

TEST(EngineCosts, AreNothingWhereNothingWasMeasured) {
  EXPECT_EQ(EngineCosts{}.lost_after(1000), 0);
}

TEST(DoubtsAboutTimes, SayWhichFigureSpreadsAndHowFar) {
  Calibration calibration = sample();
  EXPECT_THAT(doubts_about_times(calibration, false), IsEmpty());
  calibration.step = {100'000, 90'000, 130'000};
  calibration.d2h.back().duration = {100'000, 50'000, 150'000};
  EXPECT_THAT(
      doubts_about_times(calibration, false),
      ElementsAre(HasSubstr("step times spread by 40%"), HasSubstr("large copies out spread by 100%")));
}

TEST(DoubtsAboutTimes, AreThereWhereNothingWasCalibrated) {
  EXPECT_THAT(doubts_about_times(std::nullopt, false), ElementsAre(HasSubstr("no calibration")));
  EXPECT_THAT(doubts_about_times(std::nullopt, true), IsEmpty());
}

TEST(CalibrationJson, ReadsBackWhatItWrote) {
  Calibration calibration = sample();
  calibration.copy_out_per_mib = {20, 10, 30};
  calibration.copy_in_per_mib = {50, 40, 60};
  const nlohmann::json json = nlohmann::json::parse(to_json(calibration).dump());
  EXPECT_EQ(calibration_from_json(JsonValue(json, "t.json: ")), calibration);
}

TEST(CalibrationJson, RefusesListsThatDoNotRise) {
  nlohmann::json json = nlohmann::json::parse(to_json(sample()).dump());
  json["standstills"][1]["stood_ns"] = 100;
  EXPECT_THROW(calibration_from_json(JsonValue(json, "t.json: ")), Error);
}

}  // namespace
}  // namespace offprof
