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

const Trace kTrace = [] {
  Trace trace;
  trace.model.name = "model.pt";
  trace.policy = preset_policy("trl");
  return trace;
}();

ReportRun run_of(const Metrics& now, const Metrics& keep) {
  ReportRun run;
  run.trace = &kTrace;
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

TEST(Verdict, SaysWhatHelpsAStepThatOffloadingDoesNotMakeFit) {
  const Metrics now = metrics(4 * kGiB, 1000);
  ReportRun run = run_of(now, now);
  const TuneResult nothing_fits;
  EXPECT_THAT(sentences_of({run}, &nothing_fits), Contains(HasSubstr("offprof advise tries checkpointing")));
  run.record.resident_bytes = 3 * kGiB;
  EXPECT_THAT(sentences_of({run}, &nothing_fits),
              Contains(AllOf(HasSubstr("takes 3.00 GiB alone"), HasSubstr("offprof advise says what can"))));
  run.device_memory_bytes = 5 * kGiB;
  EXPECT_THAT(sentences_of({run}, &nothing_fits), Not(Contains(HasSubstr("offprof advise"))));
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

TEST(Verdict, DoesNotRecommendThePolicyThatTheStepHad) {
  const Metrics now = metrics(kGiB, 1000);
  TuneResult result;
  result.keep = {preset_policy("keep"), now};
  result.chosen = Candidate{preset_policy("trl"), now};
  EXPECT_THAT(sentences_of({run_of(now, now)}, &result),
              Contains("The tuner recommends the policy of this step."));
}

TEST(Verdict, SaysInWhatElseThanThePolicyTwoRunsDiffer) {
  const Metrics now = metrics(kGiB, 1000);
  Trace other = kTrace;
  ReportRun last = run_of(now, now);
  last.trace = &other;
  EXPECT_THAT(sentences_of({run_of(now, now), last}), Not(Contains(HasSubstr("differ"))));
  other.model.name = "other.pt";
  EXPECT_THAT(
      sentences_of({run_of(now, now), last}),
      Contains("The models differ: model.pt and other.pt. So changes are not those of a policy alone."));
}

TEST(Verdict, AMemorySnapshotHasNoStepAndNoPolicy) {
  Metrics now = metrics(kGiB, 1'000'000);
  Trace snapshot;
  snapshot.model.name = ModelInfo::kMemorySnapshot;
  ReportRun run = run_of(now, now);
  run.trace = &snapshot;
  run.recorded.device_reserved_peak_bytes = 2 * kGiB;
  run.record.resident_bytes = kGiB / 4;
  run.peak_place = {.phase = "the recorded period", .op = "forward (model.py:12)"};
  EXPECT_THAT(sentences_of({run}),
              testing::ElementsAre("The memory snapshot peaks at 1.00 GiB of device memory, for which the "
                                   "allocator reserves 2.00 GiB. The "
                                   "peak is at forward (model.py:12)."));
  ReportRun first = run;
  first.label = "before";
  first.recorded.device_peak_bytes = 2 * kGiB;
  EXPECT_THAT(sentences_of({first, run}),
              Contains("Against before, the peak goes from 2.00 GiB to 1.00 GiB (-50.0%)."));
  const Verdict verdict = judge({run}, nullptr);
  EXPECT_THAT(verdict.figures, testing::Contains(testing::Field(&VerdictFigure::remark, "25% of the peak")));
}

TEST(Verdict, IsHtmlWithItsTextEscaped) {
  EXPECT_THAT(to_html(Verdict{{"a < b"}, {{"peak", "1 B", ""}}}),
              AllOf(HasSubstr("<p>a &lt; b</p>"), HasSubstr("<dt>peak</dt><dd>1 B</dd>")));
}

}  // namespace
}  // namespace offprof
