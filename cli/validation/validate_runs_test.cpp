#include "cli/validation/validate_runs.h"

#include <gmock/gmock.h>

#include <functional>

#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kRounds = 5;
constexpr std::size_t kPolicies = 12;

/// Returns a trace of a step with twelve layers that takes a few milliseconds.
Trace chain_trace() {
  Trace trace = sample_trace();
  std::vector<LayerSketch> layers(12, {.forward_ns = 200'000, .backward_ns = 400'000});
  for (int i = 0; i < 12; ++i) layers[static_cast<std::size_t>(i)].bytes = (1 + i % 3) * 400 * kKiB;
  trace.program = ChainSketch::program(layers);
  return as_visited(std::move(trace));
}

Trace calibrated(Trace trace, Nanoseconds step) {
  trace.environment.calibration.emplace().step = {step, step, step};
  return trace;
}

std::vector<Policy> policies_of(const ValidationRuns& runs) {
  std::vector<Policy> policies;
  for (const ComparedPolicy& compared : runs.comparison.policies) policies.push_back(compared.policy);
  return policies;
}

ValidationRuns runs_of(const Trace& trace) {
  return choose_runs(trace, trace.environment.link, kPolicies, kRounds);
}

/// Returns the measurements of an engine on a machine with the times of the trace `machine`.
ComparisonResult measured_on(const Trace& machine, const Trace& trace) {
  ComparisonResult result{machine, {}};
  const TraceSteps steps(machine);
  for (const ComparedPolicy& compared : runs_of(trace).comparison.policies) {
    PolicyRun& run = result.runs.emplace_back();
    run.policy = compared.policy;
    run.measured = steps.predict(run.policy, machine.environment.link);
    run.gradients = "bitwise";
    run.commands = replay_commands(steps.step(run.policy), run.policy);
    run.step_times_ns.assign(static_cast<std::size_t>(kRounds * compared.visits_per_round),
                             *run.measured.step_time_ns);
  }
  return result;
}

ValidationReport report_on(const Trace& machine, const Trace& trace) {
  return judge_runs(trace, trace.environment.link, measured_on(machine, trace), kRounds);
}

Trace slower(Trace trace, double factor) {
  scale_compute(trace.program, factor);
  return trace;
}

TEST(ChooseRuns, VisitsKeepMoreOftenIfItDeterminesTheDrift) {
  Trace trace = chain_trace();
  const auto measured = runs_of(trace).comparison.policies;
  EXPECT_EQ(measured[0].policy, preset_policy("keep"));
  EXPECT_EQ(measured[0].visits_per_round, 3);
  EXPECT_EQ(measured[1].visits_per_round, 1);
  trace.environment.times_are_modelled = true;
  EXPECT_EQ(runs_of(trace).comparison.policies[0].visits_per_round, 1);
}

TEST(ChooseRuns, TimesAsManyStepsAsFitIntoAVisit) {
  const Trace trace = chain_trace();
  EXPECT_EQ(runs_of(trace).comparison.policies[0].timed_steps, 9);
  EXPECT_EQ(runs_of(slower(trace, 4)).comparison.policies[0].timed_steps, 3);
  EXPECT_EQ(runs_of(slower(trace, 100)).comparison.policies[0].timed_steps, 1);
}

TEST(ChooseRuns, TimesOneStepIfMemoryDependsOnTheNumberOfSteps) {
  const Trace trace = as_visited(virtual_sample_trace());
  EXPECT_EQ(trace.settings.steps, 2);
  EXPECT_EQ(runs_of(trace).comparison.policies[0].timed_steps, 1);
}

TEST(ChooseRuns, LeavesOutSettingsThatDoNotFit) {
  Trace trace = chain_trace();
  trace.settings.device_memory_bytes = 1;
  EXPECT_EQ(runs_of(as_visited(trace)).left_out, 0u);  // as_visited removes the cap of --device-memory
  const Bytes keep =
      *TraceSteps(trace).predict(preset_policy("keep"), trace.environment.link).device_peak_bytes;
  trace.environment.device_memory_bytes = keep - 1;
  const ValidationRuns runs = runs_of(as_visited(trace));
  EXPECT_GT(runs.left_out, 0u);
  EXPECT_EQ(runs.left_out + runs.comparison.policies.size(), kPolicies);
  EXPECT_THAT(policies_of(runs), testing::Not(Contains(preset_policy("keep"))));
  EXPECT_THAT(policies_of(runs), Contains(preset_policy("offload")));
}

TEST(ChooseRuns, CountsMemoryOutsideTheAllocator) {
  Trace trace = chain_trace();
  const Bytes keep =
      *TraceSteps(trace).predict(preset_policy("keep"), trace.environment.link).device_peak_bytes;
  trace.environment.device_memory_bytes = keep + 100;
  trace.environment.beside_allocator = {10, 100, 50};
  EXPECT_THAT(policies_of(runs_of(trace)), Contains(preset_policy("keep")));
  trace.environment.beside_allocator->end_bytes = 101;
  EXPECT_THAT(policies_of(runs_of(trace)), testing::Not(Contains(preset_policy("keep"))));
}

TEST(ChooseRuns, RejectsADeviceThatNothingFitsInto) {
  Trace trace = chain_trace();
  trace.environment.device_memory_bytes = 1;
  EXPECT_THROW(runs_of(trace), Error);
}

TEST(ChooseRuns, RequestsTheCalibratedDistanceOfCores) {
  Trace trace = chain_trace();
  EXPECT_EQ(runs_of(trace).comparison.patience_ns, 0);
  trace.environment.calibration.emplace().core_to_core = {70, 60, 80};
  EXPECT_EQ(runs_of(trace).comparison.core_to_core_ns, 70);
  EXPECT_GT(runs_of(trace).comparison.patience_ns, 0);
}

TEST(JudgeRuns, FindsNothingIfAllIsAsPredicted) {
  const ValidationReport report = report_on(chain_trace(), chain_trace());
  EXPECT_EQ(report.outcome(), Outcome::kHold);
  EXPECT_EQ(report.drift, 0);
  EXPECT_EQ(report.accuracy.max_error, 0);
  EXPECT_EQ(report.adjusted.kendall_tau, 1);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(JudgeRuns, ExcludesRefusedSettingsFromItsFigures) {
  const Trace trace = chain_trace();
  ComparisonResult result = measured_on(trace, trace);
  PolicyRun refused;
  refused.policy = result.runs.back().policy;
  refused.out_of_memory = "out of device memory: 7 B asked for";
  result.runs.back() = refused;
  const ValidationReport report = judge_runs(trace, trace.environment.link, result, kRounds);
  ASSERT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(report.refused[0].policy, refused.policy);
  EXPECT_EQ(report.settings.size(), result.runs.size() - 1);
  EXPECT_EQ(report.outcome(), Outcome::kCannotTell);
  for (PolicyRun& run : result.runs) run.out_of_memory = refused.out_of_memory;
  EXPECT_THROW(judge_runs(trace, trace.environment.link, result, kRounds), Error);
}

TEST(JudgeRuns, TreatsASlowerMachineAsDrift) {
  const ValidationReport report = report_on(slower(chain_trace(), 1.05), chain_trace());
  EXPECT_NEAR(*report.drift, 0.05, 1e-6);
  EXPECT_GT(report.accuracy.max_error, 0.02);
  EXPECT_LT(report.adjusted.max_error, 1e-5);
}

TEST(JudgeRuns, DoesNotJudgeTheSettingThatSetsTheDrift) {
  const Trace trace = chain_trace();
  ComparisonResult result = measured_on(trace, trace);
  for (PolicyRun& run : result.runs)
    if (run.policy.threshold_bytes)
      for (Nanoseconds& time : run.step_times_ns) time = time * 100 / 104;
  const ValidationReport report = judge_runs(trace, trace.environment.link, result, kRounds);
  EXPECT_TRUE(report.settings[0].sets_drift);
  EXPECT_NEAR(report.adjusted.mean_error, 0.04, 1e-6);  // keep has no error, and is not included in the mean
}

TEST(JudgeRuns, JudgesModelledTimesAsTheyAre) {
  Trace trace = chain_trace();
  trace.environment.times_are_modelled = true;
  const ValidationReport report = report_on(slower(trace, 1.1), trace);
  EXPECT_FALSE(report.drift);
  EXPECT_FALSE(report.settings[0].sets_drift);
  EXPECT_EQ(report.outcome(), Outcome::kDoNotHold);
  EXPECT_EQ(report.adjusted.mean_error, report.accuracy.mean_error);
}

TEST(JudgeRuns, HasNoDriftForAStepOfZeroTime) {
  const Trace trace = slower(chain_trace(), 0);
  EXPECT_FALSE(report_on(chain_trace(), trace).drift);
  EXPECT_EQ(report_on(trace, trace).accuracy.mean_error, 0);
}

TEST(JudgeRuns, HasNoDriftWithoutAStepThatOffloadsNothing) {
  Trace trace = chain_trace();
  trace.environment.device_memory_bytes =
      *TraceSteps(trace).predict(preset_policy("keep"), trace.environment.link).device_peak_bytes - 1;
  EXPECT_FALSE(report_on(trace, trace).drift);
  EXPECT_EQ(report_on(trace, trace).outcome(), Outcome::kHold);
}

TEST(JudgeRuns, ReportsTheDriftOfANewCalibration) {
  const Trace trace = calibrated(chain_trace(), 7'000'000);
  const ValidationReport report = report_on(calibrated(slower(trace, 1.08), 7'560'000), trace);
  EXPECT_NEAR(*report.recalibrated_drift, 0.08, 1e-9);
  EXPECT_THAT(report.warnings, IsEmpty());
}

TEST(JudgeRuns, WarnsOfADriftThatANewCalibrationContradicts) {
  const Trace trace = calibrated(chain_trace(), 7'000'000);
  EXPECT_THAT(report_on(calibrated(slower(trace, 1.08), 7'000'000), trace).warnings,
              Contains(HasSubstr("differs from that of a new calibration")));
}

TEST(JudgeRuns, WarnsOfALargeDrift) {
  EXPECT_THAT(report_on(slower(chain_trace(), 1.2), chain_trace()).warnings,
              Contains(HasSubstr("a drift of +20% is large")));
}

TEST(JudgeRuns, WarnsOfChangedConditions) {
  const auto warnings_with = [](const std::function<void(Environment&)>& change) {
    Trace machine = chain_trace();
    change(machine.environment);
    return report_on(machine, chain_trace()).warnings;
  };
  EXPECT_THAT(warnings_with([](Environment& now) { now.torch_version = "2.12.0"; }),
              Contains(HasSubstr("another LibTorch (2.11.0)")));
  EXPECT_THAT(warnings_with([](Environment& now) { now.device_name = "CPU, 64 cores"; }),
              Contains(HasSubstr("with (CPU, 64 cores)")));
  EXPECT_THAT(warnings_with([](Environment& now) { now.threads = 7; }),
              Contains(HasSubstr("another threads")));
}

TEST(JudgeRuns, ASettingIsInexactIfLaterStepsIssueOtherCommands) {
  const Trace trace = chain_trace();
  ComparisonResult result = measured_on(trace, trace);
  result.runs[1].steps_with_other_commands = 1;
  const ValidationReport report = judge_runs(trace, trace.environment.link, result, kRounds);
  EXPECT_THAT(report.settings[0].inexact, IsEmpty());
  EXPECT_THAT(report.settings[1].inexact, testing::ElementsAre("commands"));
}

TEST(JudgeRuns, WarnsOfDifferentKernelTimes) {
  Trace trace = chain_trace();
  trace.environment.times_are_modelled = true;
  const Trace machine = trace;
  trace.environment.kernel_times = "h200.json";
  EXPECT_THAT(report_on(machine, trace).warnings, Contains(HasSubstr("another kernel times (h200.json)")));
}

}  // namespace
}  // namespace offprof
