#include "cli/reports/tune_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Candidate candidate(const char* policy, Bytes peak, Nanoseconds step_ns) {
  Candidate made{preset_policy(policy), {}};
  made.predicted.device_peak_bytes = peak;
  made.predicted.host_peak_bytes = 0;
  made.predicted.step_time_ns = step_ns;
  return made;
}

/// Two policies, of which the one that takes more memory was chosen.
TuneReport report() {
  TuneReport report;
  report.trace = "t.json";
  report.goal.memory_budget_bytes = 3 * kGiB;
  report.times_are_modelled = true;
  report.result.keep = candidate("keep", 2 * kGiB, 1'480'000'000);
  report.result.trl = candidate("trl", kGiB, 1'600'000'000);
  report.result.frontier = {candidate("offload", kGiB, 1'500'000'000), report.result.keep};
  report.result.chosen = report.result.keep;
  report.why.emplace();
  report.next = {"run", "m.pt"};
  return report;
}

TEST(TuneReport, MarksPoliciesThatTheModelCannotTellApart) {
  TuneReport alike = report();
  EXPECT_THAT(to_text(alike, {}), AllOf(Not(HasSubstr("~")), Not(HasSubstr("range "))));
  alike.step_range = {1'350'000'000, 1'620'000'000};
  alike.alike = {0};
  EXPECT_THAT(to_text(alike, {}),
              AllOf(HasSubstr("step 1.48 s (1.35 to 1.62)"), HasSubstr("\n  ~  "),
                    HasSubstr("~: the model cannot tell which is faster, this or the chosen policy\n")));
  const nlohmann::ordered_json json = to_json(alike);
  EXPECT_EQ(json["alike"], nlohmann::json({0}));
  EXPECT_EQ(json["step_time_range_ns"]["high"], 1'620'000'000);
}

}  // namespace
}  // namespace offprof
