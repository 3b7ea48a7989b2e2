#include "cli/validate_report.h"

#include <gmock/gmock.h>

namespace offprof {
namespace {

using ::testing::HasSubstr;

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
  report.rounds = 2;
  std::vector<TimedSetting> times;
  for (const ValidatedSetting& one : settings) times.push_back(one.times);
  report.settings = std::move(settings);
  report.accuracy = report.adjusted = accuracy_of(times);
  return report;
}

TEST(ValidationReport, HoldsWhereErrorsAreWithinTheBounds) {
  const ValidationReport report = report_of({setting(101'000, {100'000}), setting(199'000, {200'000})});
  EXPECT_EQ(report.mean_verdict(), Verdict::kWithin);
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(to_text(report, {}), HasSubstr("The predictions hold."));
}

TEST(ValidationReport, DoesNotHoldBeyondThem) {
  const ValidationReport report = report_of({setting(150'000, {100'000}), setting(200'000, {200'000})});
  EXPECT_EQ(report.mean_verdict(), Verdict::kBeyond);
  EXPECT_FALSE(report.ok());
  EXPECT_THAT(to_text(report, {}), HasSubstr("The predictions do NOT hold."));
}

TEST(ValidationReport, SaysWhereTheNoiseHidesWhetherTheyHold) {
  const ValidationReport report =
      report_of({setting(99'000, {100'000, 110'000})});  // 5.7% of error, 9.5% of noise
  EXPECT_EQ(report.mean_verdict(), Verdict::kHiddenByNoise);
  EXPECT_TRUE(report.ok());
  EXPECT_THAT(to_text(report, {}), HasSubstr("hidden by noise"));
}

TEST(ValidationReport, DoesNotHoldWhereTheRankingIsWrong) {
  ValidationReport report = report_of({setting(101'000, {100'000}), setting(100'500, {101'000})});
  EXPECT_EQ(report.ranking_verdict(), Verdict::kBeyond);
  EXPECT_FALSE(report.ok());
}

TEST(ValidationReport, ByteDifferencesAndWrongGradientsAreNeverNoise) {
  ValidationReport inexact = report_of({setting(100'000, {100'000})});
  inexact.settings[0].inexact = {"device_peak_bytes"};
  EXPECT_FALSE(inexact.ok());
  EXPECT_THAT(to_text(inexact, {}), HasSubstr("device_peak_bytes differs"));
  ValidationReport wrong = report_of({setting(100'000, {100'000})});
  wrong.settings[0].gradients = "2 of 7 differ";
  EXPECT_FALSE(wrong.ok());
  EXPECT_THAT(to_text(wrong, {}), HasSubstr("gradients: 2 of 7 differ"));
}

TEST(ValidationReport, TextAndJsonSayTheSame) {
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
  const std::string text = to_text(report_of(std::move(settings)), {80, false});
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin = end + 1))
    EXPECT_LE(display_width(text.substr(begin, end - begin)), 80u) << text.substr(begin, end - begin);
}

}  // namespace
}  // namespace offprof
