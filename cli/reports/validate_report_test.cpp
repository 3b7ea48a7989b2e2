#include "cli/reports/validate_report.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "traces/base/units.h"

namespace offprof {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ValidatedSetting setting(Nanoseconds predicted, std::vector<Nanoseconds> measured) {
  ValidatedSetting setting;
  setting.policy = preset_policy("offload");
  setting.times = setting.adjusted = {predicted, std::move(measured)};
  setting.gradients = "bitwise";
  return setting;
}

ValidationReport report_of(std::vector<ValidatedSetting> settings) {
  ValidationReport report;
  report.model = "m.pt";
  report.trace = "t.json";
  report.device = "host";
  report.rounds = static_cast<int>(settings.front().times.measured_ns.size());
  std::vector<TimedSetting> times;
  for (const ValidatedSetting& one : settings) times.push_back(one.times);
  report.settings = std::move(settings);
  report.accuracy = report.adjusted = accuracy_of(times, static_cast<std::size_t>(report.rounds));
  return report;
}

TEST(ValidationReport, HoldsIfErrorsAreWithinTheBounds) {
  const ValidationReport report = report_of({setting(101'000, {100'000}), setting(199'000, {200'000})});
  EXPECT_EQ(report.mean_verdict(), BoundResult::kWithin);
  EXPECT_EQ(report.outcome(), Outcome::kHold);
  EXPECT_THAT(to_text(report, {}), HasSubstr("The predictions hold."));
}

TEST(ValidationReport, DoesNotHoldIfErrorsAreBeyondTheBounds) {
  const ValidationReport report = report_of({setting(150'000, {100'000}), setting(200'000, {200'000})});
  EXPECT_EQ(report.mean_verdict(), BoundResult::kBeyond);
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
  EXPECT_THAT(to_text(report, {}), HasSubstr("The predictions do NOT hold."));
}

TEST(ValidationReport, GivesNoFigureOfTheTimesOfDifferentProcesses) {
  ValidationReport report = report_of({setting(150'000, {100'000})});
  report.runs_one_by_one = true;
  EXPECT_EQ(report.outcome(), Outcome::kHold);
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("Step times: not compared"));
  EXPECT_THAT(text, Not(HasSubstr("mean error")));
  EXPECT_FALSE(to_json(report).contains("by_trace"));
  EXPECT_FALSE(to_json(report)["settings"][0].contains("error"));
}

TEST(ValidationReport, JudgesTheModelledTimesOfDifferentProcesses) {
  ValidationReport report = report_of({setting(150'000, {100'000})});
  report.runs_one_by_one = report.times_are_modelled = true;
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
  EXPECT_TRUE(to_json(report).contains("by_trace"));
}

TEST(ValidationReport, CannotTellIfNoiseHidesTheResult) {
  const ValidationReport report =
      report_of({setting(99'000, {100'000, 110'000})});  // 5.7 % error, 9.5 % noise
  EXPECT_EQ(report.mean_verdict(), BoundResult::kHiddenByNoise);
  EXPECT_EQ(report.outcome(), Outcome::kCannotTell);
  EXPECT_EQ(to_json(report)["outcome"], "cannot tell");
  EXPECT_EQ(to_json(report)["ok"], false);
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("hidden by noise"));
  EXPECT_THAT(text, HasSubstr("Noise hides whether the predictions hold"));
  EXPECT_THAT(text, Not(HasSubstr("The predictions hold")));
}

TEST(ValidationReport, CannotTellIfCoresWereDisplaced) {
  ValidationReport report =
      report_of({setting(150'000, {100'000, 100'000}), setting(300'000, {200'000, 200'000})});
  EXPECT_THAT(to_text(report, {}), Not(HasSubstr("Cores:")));
  report.repeated_visits = 3;
  report.displaced_visits = 1;
  EXPECT_EQ(report.outcome(), Outcome::kCannotTell);
  EXPECT_EQ(to_json(report)["displaced_visits"], 1);
  EXPECT_THAT(to_text(report, {}), HasSubstr("Cores: 3 runs were repeated"));
  EXPECT_THAT(to_text(report, {}), HasSubstr("Record it again."));
  report.settings[0].inexact = {"device_peak_bytes"};
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold) << "memory does not depend on the cores' places";
}

/// Each setting scatters by about as much as the bound, in a different order of rounds, but all errors have
/// the same sign.
TEST(ValidationReport, DoesNotMistakeABiasForNoise) {
  std::vector<ValidatedSetting> settings;
  for (Nanoseconds i = 0; i < 30; ++i) {
    const Nanoseconds time = 100'000 + 5'000 * i, off = time * 4 / 100, less = time * (i % 5) / 300;
    std::vector<Nanoseconds> times = {time - off, time + off - less, time, time + less, time - less,
                                      time + off, time + less - off};
    std::rotate(times.begin(), times.begin() + i % 7, times.end());
    settings.push_back(setting(time * 955 / 1000, std::move(times)));
  }
  const ValidationReport report = report_of(std::move(settings));
  EXPECT_LT(report.adjusted.mean_error, 0.05);
  EXPECT_GT(*report.adjusted.mean_noise, 0.02);
  EXPECT_EQ(report.mean_verdict(), BoundResult::kBeyond);
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
}

TEST(ValidationReport, ReportsThatThereIsNothingToRank) {
  const ValidationReport report = report_of({setting(101'000, {100'000}), setting(102'000, {100'000})});
  EXPECT_EQ(report.ranking_verdict(), BoundResult::kNothingToRank);
  EXPECT_EQ(report.outcome(), Outcome::kHold);
  EXPECT_EQ(to_json(report)["verdicts"]["kendall_tau"], "nothing to rank");
  EXPECT_THAT(to_text(report, {}), HasSubstr("The predictions hold; there was nothing to rank."));
}

TEST(ValidationReport, OmitsTheSettingThatSetsTheDrift) {
  ValidationReport report =
      report_of({setting(99'000, {100'000}), setting(200'000, {200'000}), setting(300'000, {300'000})});
  report.settings[0].policy = preset_policy("keep");
  report.settings[0].sets_drift = true;
  report.adjusted.ranked_pairs = 1;
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("Ranking: 1 of 1 pairs"));
  EXPECT_THAT(text, Not(HasSubstr(describe(preset_policy("keep")))));
}

TEST(ValidationReport, ExplainsAMissingDrift) {
  ValidationReport report = report_of({setting(100'000, {100'000})});
  EXPECT_THAT(to_text(report, {}), HasSubstr("Drift: unknown"));
  report.times_are_modelled = true;
  EXPECT_THAT(to_text(report, {}), HasSubstr("Drift: none, since times are modelled"));
  EXPECT_TRUE(to_json(report)["drift"].is_null());
}

TEST(ValidationReport, DoesNotHoldIfTheRankingIsWrong) {
  ValidationReport report = report_of({setting(101'000, {100'000}), setting(100'500, {101'000})});
  EXPECT_EQ(report.ranking_verdict(), BoundResult::kBeyond);
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
}

TEST(ValidationReport, ByteDifferencesAndWrongGradientsAreNeverNoise) {
  ValidationReport inexact = report_of({setting(100'000, {100'000})});
  inexact.settings[0].inexact = {"device_peak_bytes"};
  EXPECT_EQ(inexact.outcome(), Outcome::kDoNotHold);
  EXPECT_THAT(to_text(inexact, {}), HasSubstr("device_peak_bytes differs"));
  ValidationReport wrong = report_of({setting(100'000, {100'000})});
  wrong.settings[0].gradients = "2 of 7 differ";
  EXPECT_EQ(wrong.outcome(), Outcome::kDoNotHold);
  EXPECT_THAT(to_text(wrong, {}), HasSubstr("gradients: 2 of 7 differ"));
}

/// Among free blocks of one size the allocator takes the lowest, and the driver chooses the addresses.
TEST(ValidationReport, AcceptsOtherAllocatedMemoryOnARealGpuOnly) {
  ValidationReport report = report_of({setting(100'000, {100'000})});
  ValidatedSetting& only = report.settings[0];
  only.inexact = {"device_allocated_peak_bytes"};
  only.measured.device_allocated_peak_bytes = 100 * kMiB;
  only.predicted.device_allocated_peak_bytes = 101 * kMiB;
  report.device = "virtual:h200";
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
  report.device = "cuda:1";
  EXPECT_NE(report.outcome(), Outcome::kDoNotHold);
  EXPECT_FALSE(report.memory_is_exact());
  EXPECT_THAT(to_text(report, {}), AllOf(HasSubstr("device_allocated_peak_bytes differs: 100 MiB measured,"),
                                         HasSubstr("Requested memory is exact")));
  only.predicted.device_allocated_peak_bytes = 106 * kMiB;
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
}

TEST(ValidationReport, ListsSettingsThatTheDeviceHadNoMemoryFor) {
  ValidationReport report = report_of({setting(101'000, {100'000}), setting(199'000, {200'000})});
  EXPECT_FALSE(to_json(report).contains("refused"));
  report.refused.push_back({preset_policy("keep"), {}, "out of device memory: 1 B asked for, 3 B live"});
  EXPECT_EQ(report.outcome(), Outcome::kCannotTell);
  EXPECT_EQ(to_json(report)["refused"][0]["out_of_memory"], "out of device memory: 1 B asked for, 3 B live");
  EXPECT_THAT(to_text(report, {}), HasSubstr("not run: out of device memory: 1 B asked for"));
}

TEST(ValidationReport, HoldsIfGradientsDifferWithoutOffloadingToo) {
  ValidationReport report = report_of({setting(100'000, {100'000})});
  report.settings[0].gradients = "not reproducible without offloading, by up to 1e-07 in 1 of 7 parameters";
  EXPECT_TRUE(report.gradients_are_right());
  EXPECT_THAT(to_text(report, {}),
              HasSubstr("Gradients of 1 settings: not reproducible without offloading."));
}

TEST(ValidationReport, TextAndJsonAgree) {
  ValidationReport report = report_of({setting(101'000, {100'000}), setting(199'000, {200'000})});
  report.drift = 0.021;
  const auto json = to_json(report);
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["drift"], 0.021);
  EXPECT_EQ(json["settings"].size(), 2u);
  EXPECT_EQ(json["verdicts"]["mean_error"], "within");
  EXPECT_NEAR(json["less_drift"]["mean_error"].get<double>(), 0.0075, 1e-12);
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("0.75%"));
  EXPECT_THAT(text, HasSubstr("+2.10%"));
}

TEST(ValidationReport, FitsEightyColumns) {
  std::vector<ValidatedSetting> settings(12, setting(101'000'000, {100'000'000, 102'000'000}));
  settings[0].policy.name = "a name that is long";
  settings[0].policy.tensors = std::vector<std::int32_t>(1000, 1);
  ValidationReport report = report_of(std::move(settings));
  report.drift = report.recalibrated_drift = -0.123;
  report.accuracy.p95_error = report.adjusted.p95_error = 12.3456;
  report.adjusted.p95_range = {11.2345, 13.4567};
  report.notes = report.warnings = {std::string(30, 'a') + ' ' + std::string(60, 'b')};
  const std::string text = to_text(report, {80, false});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin = end + 1))
    EXPECT_LE(display_width(text.substr(begin, end - begin)), 80u) << text.substr(begin, end - begin);
}

}  // namespace
}  // namespace offprof
