#include "traces/analysis/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

StepSummary sample_figures() {
  return figures_of(sample_trace(), "t.json");
}

StepSummary with_peak(Bytes bytes) {
  StepSummary figures = sample_figures();
  figures.metrics.device_peak_bytes = bytes;
  return figures;
}

bool passes(const StepSummary& base, const StepSummary& now, const std::string& limit) {
  return check_gate(base, now, {.limits = {parse_limit(limit)}}).ok;
}

std::vector<std::string> keys_of(const GateResult& verdict) {
  std::vector<std::string> keys;
  for (const Check& check : verdict.checks) keys.push_back(check.key);
  return keys;
}

template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return std::string(error.what()) + "\n" + error.hint();
  }
  return "no error";
}

TEST(Limit, AcceptsAPercentageOfTheBaseline) {
  EXPECT_EQ(parse_limit("step_time_ns<=+10%").bound(200), 220);
  EXPECT_EQ(parse_limit("step_time_ns<=-10%").bound(200), 180);
  EXPECT_EQ(parse_limit("device_peak_bytes<=+0%").bound(4'503'599'627'370'497), 4'503'599'627'370'497);
}

TEST(Limit, AcceptsAnAmountAboveTheBaseline) {
  EXPECT_EQ(parse_limit("d2h_bytes<=+64MiB").bound(1), 64 * kMiB + 1);
  EXPECT_EQ(parse_limit("step_time_ns<=+2ms").bound(1), 2'000'001);
}

TEST(Limit, AcceptsAnAbsoluteValue) {
  EXPECT_EQ(parse_limit("device_peak_bytes<=8GiB").bound(1), 8 * kGiB);
  EXPECT_EQ(parse_limit("step_time_ns <= 500").bound(1), 500);
  EXPECT_EQ(parse_limit("overlap_ratio>=0.5").bound(1), 0.5);
}

TEST(Limit, AcceptsTheSpreadOfAFigure) {
  EXPECT_EQ(parse_limit("step_time_ns_min<=+10%").key, "step_time_ns_min");
}

TEST(Limit, ListsTheKnownFiguresForAnUnknownOne) {
  EXPECT_THAT(error_of([] { parse_limit("gpu_peak<=1"); }),
              HasSubstr("device_peak_bytes, device_resident_bytes"));
}

TEST(Limit, RejectsInvalidText) {
  for (const char* text :
       {"", "device_peak_bytes", "device_peak_bytes<1", "device_peak_bytes=1",
        "device_peak_bytes<=", "device_peak_bytes<=10%", "device_peak_bytes<=+x%", "device_peak_bytes<=1.5XB",
        "step_time_ns<=+1MiB", "overlap_ratio>=half", "device_peak_bytes<=+-5"}) {
    EXPECT_NE(error_of([&] { parse_limit(text); }), "no error") << text;
  }
}

TEST(Gate, ChecksExactlyToTheByte) {
  EXPECT_TRUE(passes(with_peak(1000), with_peak(1000), "device_peak_bytes<=+0%"));
  EXPECT_FALSE(passes(with_peak(1000), with_peak(1001), "device_peak_bytes<=+0%"));
}

TEST(Gate, AcceptsTheBoundItself) {
  EXPECT_TRUE(passes(with_peak(1000), with_peak(1100), "device_peak_bytes<=+10%"));
  EXPECT_FALSE(passes(with_peak(1000), with_peak(1101), "device_peak_bytes<=+10%"));
}

TEST(Gate, ChecksALowerBound) {
  EXPECT_TRUE(passes(sample_figures(), sample_figures(), "overlap_ratio>=0.25"));
  EXPECT_FALSE(passes(sample_figures(), sample_figures(), "overlap_ratio>=0.26"));
}

TEST(Gate, ChecksTheFiguresOfBothSidesByDefault) {
  const GateResult verdict = check_gate(sample_figures(), sample_figures(), {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(keys_of(verdict), ElementsAre("device_peak_bytes", "step_time_ns"));
}

TEST(Gate, AllowsNoMoreMemoryAndAQuarterMoreTimeByDefault) {
  StepSummary now = with_peak(4193);
  EXPECT_FALSE(check_gate(sample_figures(), now, {}).ok);
  now = sample_figures();
  now.metrics.step_time_ns = 9300 * 5 / 4;
  EXPECT_TRUE(check_gate(sample_figures(), now, {}).ok);
  ++*now.metrics.step_time_ns;
  EXPECT_FALSE(check_gate(sample_figures(), now, {}).ok);
}

TEST(Gate, AllowsNoMoreAllocatorMemoryByDefault) {
  const StepSummary base = figures_of(virtual_sample_trace(), "t.json");
  EXPECT_THAT(keys_of(check_gate(base, base, {})),
              ElementsAre("device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes",
                          "step_time_ns"));
  StepSummary now = base;
  ++*now.metrics.device_reserved_peak_bytes;
  EXPECT_FALSE(check_gate(base, now, {}).ok);
  now = base;
  ++*now.metrics.device_allocated_peak_bytes;
  EXPECT_FALSE(check_gate(base, now, {}).ok);
}

TEST(Gate, NotesOtherAllocatorSettingsAndChecksThem) {
  Trace trace = virtual_sample_trace();
  const StepSummary base = figures_of(trace, "t.json");
  trace.program.allocator->settings = "expandable_segments:True";
  const GateResult verdict = check_gate(base, figures_of(trace, "t.json"), {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, ElementsAre("not the same allocator settings: baseline default; now "
                                         "expandable_segments:True"));
}

TEST(Gate, ReportsWhichDefaultCheckLacksAFigure) {
  StepSummary base = sample_figures();
  base.metrics.d2h_bytes = 5;
  EXPECT_THAT(check_gate(base, sample_figures(), {}).notes, Contains(HasSubstr("d2h_bytes is not checked")));
}

TEST(Gate, FailsAGivenLimitOnAMissingFigure) {
  const GateResult verdict =
      check_gate(sample_figures(), sample_figures(), {.limits = {parse_limit("d2h_bytes<=1")}});
  EXPECT_FALSE(verdict.ok);
  EXPECT_THAT(verdict.checks[0].why, HasSubstr("not in the trace"));
}

TEST(Gate, NeedsNoBaselineForAnAbsoluteLimit) {
  StepSummary base = sample_figures();
  base.metrics.device_peak_bytes.reset();
  EXPECT_TRUE(passes(base, sample_figures(), "device_peak_bytes<=8GiB"));
}

TEST(Gate, FailsForOtherInputs) {
  StepSummary now = sample_figures();
  now.settings->inputs = {"float32[2,3]"};
  const GateResult verdict = check_gate(sample_figures(), now, {});
  EXPECT_FALSE(verdict.ok);
  EXPECT_EQ(verdict.checks[0].key, "inputs");
  EXPECT_EQ(verdict.checks[0].limit, "same");
  EXPECT_TRUE(check_gate(sample_figures(), now, {.limits = {}, .allow_different = true}).ok);
}

TEST(Gate, ChecksAModelThatChangedUnderItsName) {
  StepSummary now = sample_figures();
  now.model->fingerprint = "sha256:1f";
  const GateResult verdict = check_gate(sample_figures(), now, {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("not the same model")));
}

TEST(Gate, NotesAnotherPolicyAndChecksIt) {
  StepSummary now = sample_figures();
  now.policy = preset_policy("keep");
  const GateResult verdict = check_gate(sample_figures(), now, {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("policy")));
}

TEST(Gate, IgnoresTheLinkThatEachRunMeasuresAnew) {
  StepSummary now = sample_figures();
  now.environment->link.d2h.bytes_per_second = 4.1e9;
  EXPECT_THAT(check_gate(sample_figures(), now, {}).notes, IsEmpty());
}

TEST(Gate, SkipsTimesOfAnotherMachineByDefault) {
  StepSummary now = sample_figures();
  now.environment->device_name = "CPU of another kind";
  now.metrics.step_time_ns = 1'000'000;
  const GateResult verdict = check_gate(sample_figures(), now, {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, Contains("step_time_ns is not checked: not the same machine"));
  EXPECT_FALSE(passes(sample_figures(), now, "step_time_ns<=+25%"));
}

TEST(Gate, SkipsTimesFromOtherKernelTimesByDefault) {
  Trace trace = virtual_sample_trace();
  const StepSummary base = figures_of(trace, "t.json");
  trace.environment.kernel_times = "h200.json";
  trace.metrics.step_time_ns = 1'000'000;
  const GateResult verdict = check_gate(base, figures_of(trace, "t.json"), {});
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, ElementsAre("not the same kernel times: baseline none; now h200.json",
                                         "step_time_ns is not checked: not the same kernel times"));
}

TEST(Gate, DoesNotCompareTheTimeOfASimulationWithAMeasurement) {
  StepSummary now = sample_figures();
  now.simulated = true;
  now.metrics.step_time_ns = 1'000'000;
  EXPECT_TRUE(check_gate(sample_figures(), now, {}).ok);
  EXPECT_THAT(error_of([&] { passes(sample_figures(), now, "step_time_ns<=+25%"); }),
              HasSubstr("baseline measured; now simulated"));
  EXPECT_TRUE(passes(sample_figures(), now, "step_time_ns<=2ms"));
}

StepSummary with_lost_records(bool simulated = false) {
  StepSummary figures = sample_figures();
  figures.tracing = sample_tracing();
  figures.tracing->dropped_records = 12;
  figures.simulated = simulated;
  return figures;
}

TEST(Gate, RejectsALimitOnATimeFromIncompleteRecords) {
  const GateOptions options{.limits = {parse_limit("overlap_ratio>=0.2")}};
  EXPECT_EQ(
      error_of([&] { check_gate(sample_figures(), with_lost_records(), options); }),
      "limit 'overlap_ratio>=0.2' applies to a figure that may be wrong: the tracer of t.json lost some "
      "GPU records (12 records dropped)\n"
      "Record it again, or check only bytes, which are exact anyway. With --force the limit is checked "
      "anyway.");
  EXPECT_TRUE(check_gate(with_lost_records(), sample_figures(), options).ok);  // an absolute limit
}

TEST(Gate, ChecksATimeFromIncompleteRecordsIfAllowed) {
  const GateOptions options{.limits = {parse_limit("overlap_ratio>=-0.1")}, .allow_lost_records = true};
  const GateResult verdict = check_gate(with_lost_records(), sample_figures(), options);
  EXPECT_TRUE(verdict.ok);
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("overlap_ratio may be wrong: the tracer of t.json lost")));
}

TEST(Gate, ChecksBytesAndHostTimeDespiteIncompleteRecords) {
  EXPECT_THAT(check_gate(with_lost_records(), with_lost_records(), {}).notes, IsEmpty());
}

TEST(Gate, SkipsASimulatedTimeFromIncompleteRecordsByDefault) {
  const GateResult verdict = check_gate(with_lost_records(true), with_lost_records(true), {});
  EXPECT_THAT(keys_of(verdict), ElementsAre("device_peak_bytes"));
  EXPECT_THAT(verdict.notes, Contains(HasSubstr("step_time_ns is not checked: the tracer of t.json lost")));
}

TEST(Gate, RejectsComparisonsWithNothingToCheck) {
  EXPECT_THAT(error_of([] { check_gate(StepSummary{}, StepSummary{}, {}); }), HasSubstr("no common figure"));
}

}  // namespace
}  // namespace offprof
