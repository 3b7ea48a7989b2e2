#include "traces/model/calibration.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"
#include "traces/format/calibration_io.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

MeasuredQuartiles exactly(Nanoseconds value) {
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
  calibration.phases = {{"forward", exactly(400'000)}, {"backward", {600'000, 590'000, 610'000}}};
  return calibration;
}

TEST(SummarizeMeasured, ReturnsMedianAndQuartiles) {
  EXPECT_EQ(summarize_measured({50, 10, 30, 20, 40}), (MeasuredQuartiles{30, 20, 40}));
  EXPECT_EQ(summarize_measured({7}), (MeasuredQuartiles{7, 7, 7}));
}

TEST(MeasuredQuartiles, AveragesTheTwoMiddleValuesOfAnEvenNumber) {
  EXPECT_EQ(summarize_measured({10, 40, 20, 30}).median_ns, 25);
  EXPECT_EQ(summarize_measured({7, 3}).median_ns, 5);
}

TEST(MeasuredQuartiles, ComputesTheSpreadFromTheQuartiles) {
  EXPECT_DOUBLE_EQ((MeasuredQuartiles{100, 90, 120}).relative_spread(), 0.3);
  EXPECT_DOUBLE_EQ(MeasuredQuartiles{}.relative_spread(), 0);
}

TEST(LinkOf, TakesLatencyFromSmallAndBandwidthFromLargeCopies) {
  const Link link = link_of(sample());
  EXPECT_EQ(link.d2h, (LinkDirection{1e10, 1000, 30}));
  EXPECT_EQ(link.h2d, (LinkDirection{2e10, 2000, 30}));
  EXPECT_EQ(link.launch_ns, 4);
}

TEST(LinkOf, TakesDiskFiguresFromSmallAndLargeTransfers) {
  Calibration calibration = sample();
  EXPECT_FALSE(link_of(calibration).disk.is_known());
  calibration.disk_write = {{0, exactly(100)}, {1000, exactly(1100)}};
  calibration.disk_read = {{0, exactly(50)}, {1000, exactly(550)}};
  EXPECT_EQ(link_of(calibration).disk, (DiskLink{{1e9, 100, 0}, {2e9, 50, 0}}));
}

TEST(LinkOf, PrefersTheMeasuredBandwidthInAStep) {
  Calibration calibration = sample();
  calibration.copy_in_per_mib = exactly(1'000'000);
  const Link link = link_of(calibration);
  EXPECT_EQ(link.d2h, (LinkDirection{1e10, 1000, 30}));
  EXPECT_EQ(link.h2d, (LinkDirection{1e3 * kMiB, 2000, 30}));
}

TEST(EngineCosts, LoseMoreAfterLongerStalls) {
  const EngineCosts costs = costs_of(sample());
  EXPECT_EQ(costs.lost_after(0), 0);
  EXPECT_EQ(costs.lost_after(50), 5);
  EXPECT_EQ(costs.lost_after(100), 10);
  EXPECT_EQ(costs.lost_after(200), 10);  // a longer stall never loses less
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

/// Returns the slow-down in ns per byte that remains of a measurement with this median and these distances to
/// its quartiles.
double slowdown_taken(double median, double below, double above) {
  const auto ns = [](double value) { return static_cast<Nanoseconds>(value * kMiB); };
  Calibration calibration;
  calibration.slowdown_per_mib = {ns(median), ns(median - below), ns(median + above)};
  return costs_of(calibration).slowdown_ns_per_byte;
}

TEST(EngineCosts, ShrinkAsTheMeasurementsSpread) {
  EXPECT_DOUBLE_EQ(slowdown_taken(40, 0, 0), 40);
  EXPECT_DOUBLE_EQ(slowdown_taken(40, 4, 4), 40 * (1 - 0.01));
  EXPECT_DOUBLE_EQ(slowdown_taken(40, 40, 0), 40 * (1 - 0.25));
  EXPECT_DOUBLE_EQ(slowdown_taken(40, 40, 40), 0);
  EXPECT_DOUBLE_EQ(slowdown_taken(40, 40, 400), 0);
}

TEST(EngineCosts, ChangeLittleWithTheQuartiles) {
  double before = slowdown_taken(40, 0, 20);
  for (double below = 0.1; below <= 40; below += 0.1) {
    const double taken = slowdown_taken(40, below, 20);
    EXPECT_LE(taken, before);
    EXPECT_NEAR(taken, before, 0.2);
    before = taken;
  }
}

TEST(EngineCosts, AreZeroForAMedianOfZero) {
  EXPECT_DOUBLE_EQ(slowdown_taken(0, 0, 30), 0);
}

TEST(EngineCosts, LoseNothingIfNoStallWasMeasured) {
  EXPECT_EQ(EngineCosts{}.lost_after(1000), 0);
}

TEST(Cores, AreEquallyFarApartIfNoneTakesMuchLonger) {
  EXPECT_TRUE(are_as_far_apart(50, 85));
  EXPECT_TRUE(are_as_far_apart(85, 50));
  EXPECT_FALSE(are_as_far_apart(85, 320));
  EXPECT_FALSE(are_as_far_apart(320, 85));
  EXPECT_TRUE(are_as_far_apart(0, 320)) << "one is not known";
}

TEST(CalibrationJson, ReadsFilesOfEarlierVersions) {
  nlohmann::json json = nlohmann::json::parse(to_json(sample()).dump());
  json.erase("core_to_core");
  EXPECT_EQ(calibration_from_json(JsonValue(json, "t.json: ")), sample());
}

TEST(CalibrationJson, ReadsBackWhatItWrote) {
  Calibration calibration = sample();
  calibration.copy_out_per_mib = {20, 10, 30};
  calibration.copy_in_per_mib = {50, 40, 60};
  calibration.core_to_core = {70, 60, 80};
  const nlohmann::json json = nlohmann::json::parse(to_json(calibration).dump());
  EXPECT_EQ(calibration_from_json(JsonValue(json, "t.json: ")), calibration);
}

/// Returns the error of reading the sample with one value changed.
std::string error_with(const std::string& pointer, const nlohmann::json& value) {
  nlohmann::json json = nlohmann::json::parse(to_json(sample()).dump());
  json[nlohmann::json::json_pointer(pointer)] = value;
  try {
    calibration_from_json(JsonValue(json, "t.json: "));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(CalibrationJson, RejectsQuartilesThatDoNotEncloseTheMedian) {
  EXPECT_EQ(error_with("/hook/low_ns", 1), "no error");
  EXPECT_THAT(error_with("/hook/low_ns", 2), HasSubstr("hook.median_ns: 1 is not between 2 and"));
  EXPECT_THAT(error_with("/h2d/1/high_ns", 51'500), HasSubstr("h2d[1].high_ns: 51500 is not between 52000"));
}

TEST(CalibrationJson, RejectsImpossibleTimes) {
  EXPECT_THAT(error_with("/hook/high_ns", 9e18), HasSubstr("hook.high_ns"));
  EXPECT_THAT(error_with("/step/high_ns", 9'000'000'000'000'000'000),
              HasSubstr("step.high_ns: 9000000000000000000 is"));
  EXPECT_THAT(error_with("/standstills/2/stood_ns", 9'000'000'000'000'000'000), HasSubstr("stood_ns"));
  EXPECT_THAT(error_with("/d2h/1/bytes", 9'223'372'036'854'775'807), HasSubstr("d2h[1].bytes"));
}

TEST(LinkDirection, LimitsTheDurationToTheRangeOfClocks) {
  constexpr Nanoseconds kLongest = LinkDirection::kLongest;
  EXPECT_EQ((LinkDirection{1e-300, 7}).duration(kGiB), kLongest + 7);
  EXPECT_EQ((LinkDirection{0, 7}).duration(0), kLongest + 7);
  EXPECT_EQ((LinkDirection{1e9, std::numeric_limits<Nanoseconds>::max()}).duration(3), kLongest + 3);
}

TEST(CalibrationJson, RejectsListsThatDoNotRise) {
  nlohmann::json json = nlohmann::json::parse(to_json(sample()).dump());
  json["standstills"][1]["stood_ns"] = 100;
  EXPECT_THROW(calibration_from_json(JsonValue(json, "t.json: ")), Error);
}

}  // namespace
}  // namespace offprof
