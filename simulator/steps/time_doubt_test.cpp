#include "simulator/steps/time_doubt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MeasuredQuartiles exactly(Nanoseconds value) {
  return {value, value, value};
}

/// Every figure of the calibration has no spread. Ten tensors of 1 MiB are saved. A copy takes 1 ms, compute
/// 10 ms.
Trace sample() {
  Trace trace;
  ProgramSketch sketch;
  for (int i = 0; i < 10; ++i) {
    sketch.save(sketch.alloc(kMiB));
    sketch.compute(1'000'000);
  }
  for (SavedId tensor = 10; tensor-- > 0;) sketch.node(tensor);
  sketch.backward_end();
  trace.program = sketch.program();
  trace.program.compute_spread_ns.assign(trace.program.events.size(), 0);
  Calibration& calibration = trace.environment.calibration.emplace();
  calibration.d2h = calibration.h2d = {{0, exactly(0)}, {kMiB, exactly(1'000'000)}};
  calibration.start = calibration.command = calibration.event = exactly(100);
  calibration.hook = exactly(50);
  calibration.step = exactly(10'001'500);
  trace.environment.link = link_of(calibration);
  return trace;
}

TimeDoubt doubt_of(const Trace& trace, const char* policy, const std::optional<Link>& link = {}) {
  return doubt_times(trace, TraceSteps(trace), preset_policy(policy), link.value_or(trace.environment.link));
}

TEST(TimeDoubt, IsZeroWithoutSpread) {
  const TimeDoubt doubt = doubt_of(sample(), "offload");
  EXPECT_FALSE(doubt.means_little);
  EXPECT_THAT(doubt.warnings, IsEmpty());
  EXPECT_EQ(doubt.step->low_ns, doubt.step->high_ns);
}

TEST(TimeDoubt, IsTheFiguresEffectOnTheStep) {
  Trace trace = sample();
  trace.environment.calibration->hook = {50, 0, 200'000};
  const TimeDoubt doubt = doubt_of(trace, "keep");  // 30 hooks of up to 200 us each
  EXPECT_TRUE(doubt.means_little);
  EXPECT_EQ(doubt.step->high_ns - doubt.step->low_ns, 30 * 200'000);
  EXPECT_THAT(doubt.warnings, ElementsAre(HasSubstr("a saved-tensor hook took 0 ns to 200 us")));
  trace.environment.calibration->hook = {50, 0, 200};
  EXPECT_FALSE(doubt_of(trace, "keep").means_little);
}

TEST(TimeDoubt, CopiesCountOnlyIfSomethingIsCopied) {
  Trace trace = sample();
  trace.environment.calibration->d2h.back().duration = {1'000'000, 500'000, 3'000'000};
  EXPECT_THAT(doubt_of(trace, "offload").warnings,
              ElementsAre(HasSubstr("large D2H copies took 500 us to 3.00 ms")));
  EXPECT_THAT(doubt_of(trace, "keep").warnings, IsEmpty());
}

/// The bandwidth is known from steps, so the small copies alone tell the latency. Each of the ten copies out,
/// and each of the ten copies in, is waited for.
TEST(TimeDoubt, TheSpreadOfSmallCopiesIsThatOfTheLatency) {
  for (const auto direction : {&Calibration::d2h, &Calibration::h2d}) {
    Trace trace = sample();
    Calibration& calibration = *trace.environment.calibration;
    calibration.copy_out_per_mib = calibration.copy_in_per_mib = exactly(1'000'000);
    (calibration.*direction).front().duration = {0, 0, 300'000};
    trace.environment.link = link_of(calibration);
    const TimeDoubt doubt = doubt_of(trace, "offload");
    EXPECT_EQ(doubt.step->high_ns - doubt.step->low_ns, 10 * 300'000);
  }
}

TEST(TimeDoubt, NamesSmallCopies) {
  Trace trace = sample();
  Calibration& calibration = *trace.environment.calibration;
  calibration.copy_out_per_mib = calibration.copy_in_per_mib = exactly(1'000'000);
  calibration.h2d.front().duration = {0, 0, 3'000'000};
  trace.environment.link = link_of(calibration);
  EXPECT_THAT(doubt_of(trace, "offload").warnings,
              ElementsAre(HasSubstr("small H2D copies took 0 ns to 3.00 ms")));
}

/// Without a bandwidth from steps, copies of 1 MiB take 1 ms, as measured, whatever part of it is latency.
TEST(TimeDoubt, SmallCopiesDoNotChangeTheTimeOfLargeOnes) {
  Trace trace = sample();
  trace.environment.calibration->h2d.front().duration = {0, 0, 300'000};
  const TimeDoubt doubt = doubt_of(trace, "offload");
  EXPECT_NEAR(static_cast<double>(doubt.step->high_ns - doubt.step->low_ns), 0, 10) << "rounding";
}

TEST(TimeDoubt, CopiesOverAGivenLinkAreCertain) {
  Trace trace = sample();
  trace.environment.calibration->d2h.back().duration = {1'000'000, 500'000, 3'000'000};
  EXPECT_THAT(doubt_of(trace, "offload", Link{{1e9, 0}, {1e9, 0}}).warnings, IsEmpty());
}

TEST(TimeDoubt, ReloadsCountByTheirBytes) {
  Trace trace = sample();
  trace.environment.calibration->reload_per_mib = {150'000, 0, 300'000};
  EXPECT_EQ(doubt_of(trace, "offload").step->high_ns - doubt_of(trace, "offload").step->low_ns, 10 * 300'000);
  trace.environment.calibration->reload_per_mib = {1'500'000, 0, 3'000'000};
  EXPECT_THAT(doubt_of(trace, "offload").warnings, ElementsAre(HasSubstr("the cost of a reload, per MiB")));
}

TEST(TimeDoubt, AFigureThatOnlyLengthensTheStepDoesNotLowerItsLowEnd) {
  Trace trace = sample();
  // Costs with such a spread count less than their median (see costs_of); at either quartile they count in
  // full.
  trace.environment.calibration->reload_per_mib = {150'000, 149'000, 450'000};
  const TraceSteps steps(trace);
  Step step = steps.step(preset_policy("offload"));
  step.set_costs(costs_of(*trace.environment.calibration));
  const Nanoseconds predicted =
      *replay(step, preset_policy("offload"), trace.environment.link).metrics.step_time_ns;
  const TimeDoubt doubt = doubt_of(trace, "offload");
  EXPECT_EQ(doubt.step->low_ns, predicted);
  EXPECT_GT(doubt.step->high_ns, predicted);
}

TEST(TimeDoubt, TheStepsSpreadScalesAllOfItsCompute) {
  Trace trace = sample();
  trace.environment.calibration->step = {10'000'000, 9'000'000, 13'000'000};
  const TimeDoubt doubt = doubt_of(trace, "keep");
  EXPECT_EQ(*doubt.step, (TimeRange{9'001'500, 13'001'500}));
  EXPECT_THAT(doubt.warnings,
              ElementsAre(HasSubstr("a step with nothing offloaded took 9.00 ms to 13.0 ms")));
}

TEST(TimeDoubt, IndependentOperatorTimesEvenOut) {
  Trace trace = sample();
  const std::size_t events = trace.program.events.size();
  trace.program.compute_spread_ns.assign(events, 100'000);
  const auto width =
      static_cast<double>(doubt_of(trace, "keep").step->high_ns - doubt_of(trace, "keep").step->low_ns);
  EXPECT_NEAR(width, 100'000 * std::sqrt(static_cast<double>(events)), 2);
  trace.program.compute_spread_ns[0] = 9'000'000;
  EXPECT_THAT(doubt_of(trace, "keep").warnings, ElementsAre(HasSubstr("the times of the operators")));
}

TEST(TimeDoubt, ReportsThatOperatorsWereTimedOnce) {
  Trace trace = sample();
  trace.program.compute_spread_ns.clear();
  EXPECT_THAT(doubt_of(trace, "keep").warnings, ElementsAre(HasSubstr("come from one recorded step")));
}

TEST(TimeDoubt, HasNoRangeIfNothingWasMeasured) {
  Trace trace = sample();
  trace.environment.calibration.reset();
  EXPECT_EQ(doubt_of(trace, "keep").step, std::nullopt);
  EXPECT_THAT(doubt_of(trace, "keep").warnings, ElementsAre(HasSubstr("no calibration")));
  trace.environment.times_are_modelled = true;
  EXPECT_THAT(doubt_of(trace, "keep").warnings, IsEmpty());
}

}  // namespace
}  // namespace offprof
