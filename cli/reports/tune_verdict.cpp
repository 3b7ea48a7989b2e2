#include "cli/reports/tune_verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tables/headline.h"
#include "cli/tables/step_size.h"

namespace offprof {
namespace {

std::string goal_text(const TuneReport& report) {
  const TuneGoal& goal = report.goal;
  if (goal.memory_budget_bytes)
    return fmt::format("the fastest within {}{}", format_bytes(*goal.memory_budget_bytes),
                       report.budget_is_the_devices
                           ? ", the memory of the trace's device, into which a step without offloading does "
                             "not fit"
                           : "");
  const bool is_over_another =
      report.configurations.size() > 1 && report.configurations.front().trace != report.trace;
  return fmt::format("the least memory at no more than {:g}% slowdown{}", 100 * goal.max_slowdown,
                     is_over_another ? " relative to " + report.configurations.front().trace : "");
}

/// Returns the fastest policy of the frontier that fits into the budget; nullptr: none does.
const Candidate* fastest_within(const TuneResult& result, Bytes budget) {
  const Candidate* fastest = nullptr;
  for (const Candidate& candidate : result.frontier)  // less time, the more memory
    if (device_bytes_taken(candidate.predicted) <= budget) fastest = &candidate;
  return fastest;
}

double slowdown_percent(const Candidate& candidate, const Candidate& keep) {
  return 100 * (static_cast<double>(candidate.predicted.step_time_ns.value_or(0)) /
                    static_cast<double>(std::max<Nanoseconds>(1, keep.predicted.step_time_ns.value_or(1))) -
                1);
}

/// Returns the text for a goal without a policy. It is certain that no policy exists if the budget is below
/// the lower bound of the peak.
std::string no_policy_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  const Candidate& least = least_memory(result);
  const Bytes taken = device_bytes_taken(least.predicted);
  const Bytes budget = report.goal.memory_limit().value_or(0);
  const bool is_certain = budget < result.device_peak_bound_bytes;
  const bool has_allocator = least.predicted.device_reserved_peak_bytes.has_value();
  const bool is_least = (result.family.is_whole || taken == result.device_peak_bound_bytes) && !has_allocator;
  const std::string slowdown =
      report.goal.memory_budget_bytes
          ? ""
          : fmt::format(" at no more than {:g}% slowdown", 100 * report.goal.max_slowdown);
  const std::string none =
      fmt::format("{} fits into {}{}.", is_certain ? "No policy" : "No policy that was found",
                  format_bytes(budget), slowdown);
  if (const Candidate* const fastest = slowdown.empty() ? nullptr : fastest_within(result, budget))
    return none + fmt::format(
                      " The fastest found that fits takes {}, {:+.1f}%: {}. Without --max-slowdown, tune "
                      "looks for the fastest that fits.",
                      format_duration(fastest->predicted.step_time_ns.value_or(0)),
                      slowdown_percent(*fastest, result.keep), describe(fastest->policy));
  return none + fmt::format(" The least memory {} is {}{} ({} bytes): {}.", is_least ? "reachable" : "found",
                            format_bytes(taken), has_allocator ? " reserved" : "", taken,
                            describe(least.policy));
}

}  // namespace

std::string verdict_text(const TuneReport& report, const Page& page) {
  const TuneResult& result = report.result;
  if (!result.chosen) return page.paint(Tone::kBad, wrap(no_policy_text(report), page.width, 0)) + "\n";
  const Metrics& chosen = result.chosen->predicted;
  const std::string figures =
      headline(headline_figures(result.keep.predicted), headline_figures(chosen), 0, report.step_range) +
      rate_beside(report.step_size, chosen);
  return page.paint(Tone::kStrong, wrap(figures, page.width, 0)) + "\n" +
         wrap(fmt::format("Chosen, {}: {}", goal_text(report), describe(result.chosen->policy)), page.width,
              0) +
         "\n";
}

}  // namespace offprof
