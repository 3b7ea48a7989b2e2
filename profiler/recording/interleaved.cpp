#include "profiler/recording/interleaved.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <span>
#include <thread>
#include <utility>

#include "profiler/recording/measured.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

using Clock = std::chrono::steady_clock;

/// Interval between checks of the cores' places: no event reports that they moved.
constexpr std::chrono::milliseconds kBetweenLooks(100);

/// Returns the visits of a round as policy indices, in an order that depends on `round`.
std::vector<std::size_t> visits_in_round(const Comparison& comparison, int round) {
  std::vector<std::size_t> visits;
  for (std::size_t i = 0; i < comparison.policies.size(); ++i)
    visits.insert(visits.end(), static_cast<std::size_t>(comparison.policies[i].visits_per_round), i);
  std::shuffle(visits.begin(), visits.end(), std::mt19937(static_cast<unsigned>(round)));
  return visits;
}

Nanoseconds median_step_time(std::span<const StepResult> steps) {
  std::vector<Nanoseconds> times;
  for (const StepResult& step : steps) times.push_back(step.step_time_ns);
  return median_of(std::move(times));
}

class Measurement {
 public:
  Measurement(const InterleavedJob& job, const Comparison& comparison, ComparisonResult& result)
      : job_(job),
        comparison_(comparison),
        result_(result),
        timed_(comparison.policies.size()),
        untimed_(comparison.policies.size()),
        patience_(comparison.patience_ns) {}

  void run() {
    for (int round = 0; round < comparison_.rounds; ++round)
      for (const std::size_t i : visits_in_round(comparison_, round))
        if (result_.runs[i].out_of_memory.empty()) visit(i);
    for (std::size_t i = 0; i < result_.runs.size(); ++i) {
      PolicyRun& run = result_.runs[i];
      if (!run.out_of_memory.empty()) continue;
      run.measured = summarize(timed_[i], untimed_[i]);
      run.measured.step_time_ns = median_of(run.step_times_ns);
    }
  }

 private:
  /// Repeats a visit if the cores moved. The memory of a repeated visit still counts.
  void visit(std::size_t i) {
    std::vector<StepResult> steps;
    for (;;) {
      wait_for_cores();
      const auto begin = Clock::now();
      VisitResult visit = train(i);
      if (!visit.out_of_memory.empty()) return give_up(i, std::move(visit.out_of_memory));
      steps = std::move(visit.steps);
      if (cores_are_in_place()) break;
      if (patience_.count() <= 0) {
        ++result_.displaced_visits;
        break;
      }
      patience_ -= Clock::now() - begin;
      ++result_.repeated_visits;
      std::ranges::move(steps, std::back_inserter(untimed_[i]));
    }
    result_.runs[i].step_times_ns.push_back(median_step_time(std::span(steps).subspan(1)));
    untimed_[i].push_back(std::move(steps.front()));
    std::move(steps.begin() + 1, steps.end(), std::back_inserter(timed_[i]));
  }

  VisitResult train(std::size_t i) {
    const ComparedPolicy& compared = comparison_.policies[i];
    VisitResult visit = job_.train(compared.policy, 1 + compared.timed_steps);
    const bool is_first_visit = timed_[i].empty() && untimed_[i].empty();
    if (!visit.steps.empty()) note_commands(visit.steps, is_first_visit, result_.runs[i]);
    return visit;
  }

  /// Discards what earlier visits measured, since the policy needs more memory than the device has.
  void give_up(std::size_t i, std::string out_of_memory) {
    PolicyRun& run = result_.runs[i];
    run.out_of_memory = std::move(out_of_memory);
    run.step_times_ns.clear();
    run.commands.clear();
  }

  /// Records differences in commands: a policy should decide alike in every step of every visit.
  static void note_commands(std::span<const StepResult> steps, bool is_first_visit, PolicyRun& run) {
    if (is_first_visit) run.commands = steps.front().commands;
    const bool visit_differs = steps.front().commands != run.commands;
    for (const StepResult& step : steps)
      run.steps_with_other_commands += visit_differs || step.has_other_commands ? 1 : 0;
  }

  void wait_for_cores() {
    while (patience_.count() > 0 && !cores_are_in_place()) {
      job_.progress("waiting until the cores are as far apart as during recording");
      std::this_thread::sleep_for(kBetweenLooks);
      patience_ -= kBetweenLooks;
    }
  }

  bool cores_are_in_place() const {
    const auto now = job_.core_to_core_ns();
    return !now || are_as_far_apart(*now, comparison_.core_to_core_ns);
  }

  const InterleavedJob& job_;
  const Comparison& comparison_;
  ComparisonResult& result_;
  std::vector<std::vector<StepResult>> timed_, untimed_;  ///< by policy
  std::chrono::nanoseconds patience_;                     ///< time left for repeated visits
};

}  // namespace

void measure_interleaved(const InterleavedJob& job, const Comparison& comparison, ComparisonResult& result) {
  Measurement(job, comparison, result).run();
}

}  // namespace offprof
