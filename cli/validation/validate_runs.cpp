#include "cli/validation/validate_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "cli/reports/run_report.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/policy_sample.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/analysis/figures.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Visits of `keep` per round. It determines the drift, which affects the predictions for every other
/// setting.
constexpr int kVisitsOfKeep = 3;
/// A visit has as many timed steps as are predicted to fit into kTimedNs, at most kMostTimedSteps. The
/// scatter of single steps of a few milliseconds is not of interest.
constexpr Nanoseconds kTimedNs = 100'000'000;
constexpr Nanoseconds kMostTimedSteps = 9;
/// With a caching allocator one step is timed, since device memory depends on the number of steps in a row.
constexpr int kStepsInARow = 2;
/// Time to wait for displaced cores: they come back within seconds or not at all.
constexpr Nanoseconds kPatience = 120'000'000'000;
/// A drift beyond kLargeDrift is worth a warning, and so is a larger difference from a new calibration than
/// kLargeDisagreement.
constexpr double kLargeDrift = 0.10, kLargeDisagreement = 0.05;

bool offloads_nothing(const Policy& policy) {
  return !policy.threshold_bytes;
}

int timed_steps(const Trace& trace, Nanoseconds predicted) {
  if (trace.environment.times_are_modelled || trace.program.allocator) return kStepsInARow - 1;
  return static_cast<int>(
      std::clamp<Nanoseconds>(kTimedNs / std::max<Nanoseconds>(predicted, 1), 1, kMostTimedSteps));
}

/// Removes the settings that do not fit into the device's memory. Returns the number of removed settings.
std::size_t leave_out_unfit(const Trace& trace, const TraceSteps& steps, std::vector<Policy>& policies) {
  const auto memory = usable_memory(trace.environment);
  if (!memory) return 0;
  const std::size_t left_out =
      std::erase_if(policies, [&](const Policy& policy) { return !steps.fits(policy, *memory); });
  if (policies.empty())
    throw environment_error(
        fmt::format("none of the {} settings fits into the memory that the device has for tensors ({})",
                    left_out, format_bytes(*memory)),
        "Run `offprof tune` to find the least memory that a policy can reach, or use a smaller batch.");
  return left_out;
}

/// Removes the settings for which the trace has no step program. Returns the number of removed settings.
std::size_t leave_out_inexact(const TraceSteps& steps, std::vector<Policy>& policies) {
  return std::erase_if(policies, [&](const Policy& policy) { return !steps.has_program_of(policy); });
}

ValidatedSetting setting_of(const TraceSteps& steps, const Link& link, const PolicyRun& run) {
  ValidatedSetting setting;
  setting.policy = run.policy;
  setting.predicted = steps.predict(run.policy, link);
  setting.measured = run.measured;
  setting.times = setting.adjusted = {*setting.predicted.step_time_ns, run.step_times_ns};
  setting.gradients = run.gradients;
  setting.inexact = inexact_keys(run.measured, setting.predicted);
  if (run.steps_with_other_commands > 0 ||
      replay_commands(steps.step(run.policy), run.policy) != run.commands)
    setting.inexact.emplace_back("commands");
  return setting;
}

/// Returns the setting that determines the drift; nullptr if the drift cannot be determined.
ValidatedSetting* setting_of_drift(ValidationReport& report) {
  if (report.times_are_modelled || report.settings.size() < 2) return nullptr;
  const auto keep = std::ranges::find_if(report.settings, offloads_nothing, &ValidatedSetting::policy);
  return keep != report.settings.end() && keep->times.predicted_ns > 0 ? &*keep : nullptr;
}

/// Adjusts the predictions for the drift. Afterwards the compute in `trace` is longer by the drift.
void take_drift_out(ValidationReport& report, Trace& trace, const Link& link) {
  ValidatedSetting* keep = setting_of_drift(report);
  if (keep == nullptr) return;
  keep->sets_drift = true;
  const auto measured = static_cast<double>(median_of(keep->times.measured_ns));
  report.drift = measured / static_cast<double>(keep->times.predicted_ns) - 1;
  scale_compute(trace.program, 1 + *report.drift);
  if (trace.dense_program) scale_compute(*trace.dense_program, 1 + *report.drift);
  const TraceSteps steps(trace);
  for (ValidatedSetting& setting : report.settings)
    setting.adjusted.predicted_ns =
        *replay(steps.step(setting.policy), setting.policy, link).metrics.step_time_ns;
}

/// Returns the relative increase of a step with nothing offloaded from the trace's calibration to the runs'
/// calibration.
std::optional<double> recalibrated_drift(const Trace& trace, const Trace& now) {
  const auto &then = trace.environment.calibration, &anew = now.environment.calibration;
  if (!then || !anew || then->step.median_ns <= 0) return std::nullopt;
  return static_cast<double>(anew->step.median_ns) / static_cast<double>(then->step.median_ns) - 1;
}

void refuse_to_judge_nothing(const ValidationReport& report) {
  if (!report.settings.empty() || report.refused.empty()) return;
  throw environment_error(
      fmt::format("the device had no memory for any of the {} settings; the first error: {}",
                  report.refused.size(), report.refused.front().why),
      "End other processes on the device, or use a smaller batch.");
}

/// Returns warnings about causes of wrong predictions other than the model.
std::vector<std::string> warnings_of(const ValidationReport& report, const Trace& trace, const Trace& now) {
  constexpr std::array kCircumstances = {"machine", "threads", "LibTorch", "kernel times",
                                         "allocator settings"};
  std::vector<std::string> warnings;
  for (const RunDifference& difference : run_differences(figures_of(trace, {}), figures_of(now, {})))
    if (std::ranges::find(kCircumstances, difference.what) != kCircumstances.end())
      warnings.push_back(
          fmt::format("the trace was recorded with another {} ({}) than the settings ran with ({}): its "
                      "predictions may not apply here",
                      difference.what, difference.base, difference.now));
  if (!report.drift) return warnings;
  if (std::abs(*report.drift) > kLargeDrift)
    warnings.push_back(
        fmt::format("a drift of {:+.0f}% is large: record the trace again", 100 * *report.drift));
  if (report.recalibrated_drift && std::abs(*report.drift - *report.recalibrated_drift) > kLargeDisagreement)
    warnings.emplace_back(
        "the drift differs from that of a new calibration: the machine's load has changed since then, or "
        "part "
        "of the drift is a prediction error that is not counted as one");
  return warnings;
}

std::vector<TimedSetting> judged_times(const ValidationReport& report,
                                       TimedSetting ValidatedSetting::*member) {
  std::vector<TimedSetting> times;
  for (const ValidatedSetting& setting : report.settings)
    if (!setting.sets_drift) times.push_back(setting.*member);
  return times;
}

void add_accuracy(ValidationReport& report) {
  const auto rounds = static_cast<std::size_t>(report.rounds);
  const auto keep = std::ranges::find_if(report.settings, &ValidatedSetting::sets_drift);
  const TimedSetting* reference = keep == report.settings.end() ? nullptr : &keep->times;
  report.accuracy = accuracy_of(judged_times(report, &ValidatedSetting::times), rounds);
  report.adjusted = accuracy_of(judged_times(report, &ValidatedSetting::adjusted), rounds, reference);
}

}  // namespace

Trace as_visited(Trace trace) {
  trace.settings.steps = kStepsInARow;
  trace.settings.device_memory_bytes = std::nullopt;
  return trace;
}

ValidationRuns choose_runs(const Trace& trace, const Link& link, std::size_t policies, int rounds,
                           std::optional<Place> disk) {
  const TraceSteps steps(trace);
  std::vector<Policy> chosen = spanning_policies(Step(trace.program), policies);
  std::ranges::move(ruled_policies(trace.program, trace.transforms, disk), std::back_inserter(chosen));
  ValidationRuns runs;
  runs.inexact = leave_out_inexact(steps, chosen);
  runs.left_out = leave_out_unfit(trace, steps, chosen);
  runs.comparison.rounds = rounds;
  if (const auto& calibration = trace.environment.calibration) {
    runs.comparison.core_to_core_ns = calibration->core_to_core.median_ns;
    runs.comparison.patience_ns = kPatience;
  }
  const bool drifts = !trace.environment.times_are_modelled && chosen.size() > 1;
  for (const Policy& policy : chosen) {
    const Nanoseconds predicted = *replay(steps.step(policy), policy, link).metrics.step_time_ns;
    runs.comparison.policies.push_back(
        {policy, timed_steps(trace, predicted), drifts && offloads_nothing(policy) ? kVisitsOfKeep : 1});
  }
  return runs;
}

ValidationReport judge_runs(Trace trace, const Link& link, const ComparisonResult& result, int rounds,
                            ValidationMethod method) {
  ValidationReport report;
  report.runs_one_by_one = method == ValidationMethod::kOneByOne;
  report.model = result.trace.model.name;
  report.device = result.trace.environment.device;
  report.rounds = rounds;
  report.times_are_modelled = result.trace.environment.times_are_modelled;
  if (report.compares_times()) report.recalibrated_drift = recalibrated_drift(trace, result.trace);
  report.repeated_visits = result.repeated_visits;
  report.displaced_visits = result.displaced_visits;
  {
    const TraceSteps steps(trace);
    for (const PolicyRun& run : result.runs) {
      if (run.out_of_memory.empty())
        report.settings.push_back(setting_of(steps, link, run));
      else
        report.refused.push_back({run.policy, steps.predict(run.policy, link), run.out_of_memory});
    }
  }
  refuse_to_judge_nothing(report);
  if (report.compares_times()) take_drift_out(report, trace, link);
  report.warnings = warnings_of(report, trace, result.trace);
  if (report.compares_times()) add_accuracy(report);
  return report;
}

}  // namespace offprof
