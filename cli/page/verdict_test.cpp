#include "cli/page/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Metrics metrics(Bytes peak, Nanoseconds time) {
  Metrics made;
  made.device_peak_bytes = peak;
  made.step_time_ns = time;
  return made;
}

ReportRun run_of(const Metrics& now, const Metrics& keep) {
  ReportRun run;
  run.label = "run";
  run.predicted = run.recorded = now;
  run.keep = keep;
  run.device_memory_bytes = 2 * kGiB;
  return run;
}

std::vector<std::string> sentences_of(const std::vector<ReportRun>& runs, const TuneResult* tuned = nullptr) {
  return judge(runs, tuned).sentences;
}

TEST(Verdict, SaysHowMuchOfTheDeviceIsLeft) {
  const Metrics now = metrics(kGiB, 1000);
  EXPECT_THAT(
      sentences_of({run_of(now, now)}),
      Contains(HasSubstr("peaks at 1.00 GiB of device memory. It fits: 1.00 GiB of 2.00 GiB are left")));
}

TEST(Verdict, SaysHowMuchIsMissing) {
  const Metrics now = metrics(3 * kGiB, 1000);
  EXPECT_THAT(sentences_of({run_of(now, now)}),
              Contains(HasSubstr("It does not fit: that is 1.00 GiB more than the 2.00 GiB of the device")));
}

TEST(Verdict, SaysWhatThePolicyGainsAndCosts) {
  Metrics now = metrics(kGiB, 1100);
  now.d2h_bytes = kMiB;
  EXPECT_THAT(sentences_of({run_of(now, metrics(2 * kGiB, 1000))}),
              Contains(AllOf(HasSubstr("takes the peak from 2.00 GiB to 1.00 GiB (-50.0%)"),
                             HasSubstr("1.10 us instead of 1.00 us (+10.0%)"))));
}

TEST(Verdict, SaysThatAPolicyDoesNotMoveThePeak) {
  Metrics now = metrics(kGiB, 1100);
  now.d2h_bytes = kMiB;
  EXPECT_THAT(sentences_of({run_of(now, metrics(kGiB, 1000))}),
              Contains(HasSubstr("the policy does not move the peak")));
}

TEST(Verdict, ComparesTheLastRunWithTheFirst) {
  ReportRun first = run_of(metrics(2 * kGiB, 1000), metrics(2 * kGiB, 1000));
  first.label = "keep";
  ReportRun last = run_of(metrics(kGiB, 1000), metrics(2 * kGiB, 1000));
  last.label = "tuned";
  EXPECT_THAT(sentences_of({first, last}),
              Contains(HasSubstr("Against keep, tuned takes the peak from 2.00 GiB to 1.00 GiB")));
}

TEST(Verdict, SaysIfTheReplayDiffersFromTheTrace) {
  const Metrics now = metrics(kGiB, 1000);
  ReportRun run = run_of(now, now);
  EXPECT_THAT(sentences_of({run}), Not(Contains(HasSubstr("the trace has"))));
  run.recorded.device_peak_bytes = kGiB + 1;
  EXPECT_THAT(sentences_of({run}), Contains(HasSubstr("the trace has 1073741825 bytes")));
}

TEST(Verdict, NamesTheRecommendedPolicy) {
  const Metrics now = metrics(kGiB, 1000);
  TuneResult result;
  result.keep = {preset_policy("keep"), now};
  result.chosen = Candidate{preset_policy("offload"), metrics(kMiB, 1500)};
  EXPECT_THAT(sentences_of({run_of(now, now)}, &result),
              Contains(AllOf(HasSubstr("The tuner recommends: "), HasSubstr("(+50.0%)"))));
}

TEST(Verdict, IsHtmlWithItsTextEscaped) {
  EXPECT_THAT(to_html(Verdict{{"a < b"}, {{"peak", "1 B", ""}}}),
              AllOf(HasSubstr("<p>a &lt; b</p>"), HasSubstr("<dt>peak</dt><dd>1 B</dd>")));
}

}  // namespace
}  // namespace offprof
