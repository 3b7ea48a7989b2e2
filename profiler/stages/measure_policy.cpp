#include "profiler/stages/measure_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recording/gpu_figures.h"
#include "profiler/recording/measured.h"
#include "profiler/recording/timeline_builder.h"

namespace offprof {
namespace {

/// Records the steps of the trace's timeline, with the GPU's tracer if there is one, and stores the results.
/// They come after the measured ones, since recording takes time. The step before them is not shown:
/// CUPTI instruments kernels at their first launch.
StepScript<void> record_timeline(PolicySteps& steps, const Policy& policy, Device& device,
                                 const StepTracing* tracing, const std::function<TracingCost()>& tracing_cost,
                                 Trace& trace) {
  const auto used_before = device.used_beside_allocator();
  const auto [warmup, count] = std::pair(steps.budget().timeline_warmup, steps.budget().timeline);
  std::vector<StepResult> shown = co_await steps.train(policy, warmup + count, Recording::kTimeline);
  shown.erase(shown.begin(), shown.begin() + warmup);
  const auto used_after = device.used_beside_allocator();
  trace.timeline = build_timeline(shown);
  if (tracing == nullptr || !tracing->is_on()) co_return;
  std::optional<TracingCost> cost;
  if (tracing_cost && !trace.environment.times_are_modelled) cost = tracing_cost();
  trace.tracing = tracing->summary();
  if (!trace.tracing) co_return;
  trace.tracing->cost = cost;
  if (used_before && !trace.environment.times_are_modelled)
    trace.tracing->device_bytes = std::max<Bytes>(*used_after - *used_before, 0);
  for (const StepResult& step : shown)
    if (const auto figures = gpu_figures_of(step)) trace.tracing->steps.push_back(*figures);
}

/// Notes reloads that were refused for lack of device memory, since such a step does not represent its
/// policy.
void note_refused_reloads(const std::vector<StepResult>& steps, Trace& trace) {
  int refused = 0;
  for (const StepResult& step : steps) refused += step.refused_reloads;
  if (refused == 0) return;
  trace.notes.push_back(
      "in the measured steps, reloads ran out of device memory " + std::to_string(refused) +
      " times: the reloads were delayed, or the stash was dropped. The policy needs more memory "
      "than was available; with enough memory its figures would differ");
}

/// Notes the same for a step that found the disk full.
void note_full_disk(const std::vector<StepResult>& steps, Trace& trace) {
  const int refusals = steps.front().disk_refusals;
  if (refusals == 0) return;
  trace.notes.push_back(
      "the disk was full: it had no room for " + std::to_string(refusals) +
      " tensors of a step, which were copied to host memory or stayed on the device (disk_full in the "
      "ledger). A prediction considers only --disk-memory");
}

/// Notes the measured compression. It depends on values and is never predicted.
void note_compression(const std::vector<StepResult>& steps, Trace& trace) {
  StoredBytes sum;
  for (const StepResult& step : steps) {
    if (!step.disk_stored) return;
    sum.given += step.disk_stored->given;
    sum.stored += step.disk_stored->stored;
    sum.peak = std::max(sum.peak, step.disk_stored->peak);
  }
  if (sum.given == 0) return;
  const auto count = static_cast<Bytes>(steps.size());
  trace.notes.push_back(fmt::format(
      "compressed: of {} per step, {} were stored ({:.1f}%), at most {} at once, "
      "in addition to host_peak_bytes",
      format_bytes(sum.given / count), format_bytes(sum.stored / count),
      100.0 * static_cast<double>(sum.stored) / static_cast<double>(sum.given), format_bytes(sum.peak)));
}

/// Returns true if the first step under a policy waits for new memory.
bool allocates_anew(const Device& device) {
  return device.cache_use() && !device.is_virtual();
}

}  // namespace

int steps_to_train(int measured, const Device& device) {
  return allocates_anew(device) ? std::max(measured, 2) : measured;
}

Metrics figures_of_trained(const std::vector<StepResult>& steps, const StepProgram& program,
                           const Device& device) {
  std::span all(steps);
  if (!carried_storages(program).empty() && all.size() > 1) all = all.subspan(1);
  const std::size_t untimed = allocates_anew(device) && all.size() > 1 ? 1 : 0;
  return summarize(all.subspan(untimed), all.first(untimed));
}

StepScript<void> measure_policy(PolicySteps& steps, const RunRequest& request, Device& device,
                                const StepTracing* tracing, const std::function<TracingCost()>& tracing_cost,
                                RunResult& result) {
  const std::vector<StepResult> measured =
      co_await steps.train(request.policy, steps_to_train(request.settings.steps, device), Recording::kNone);
  result.commands = measured.front().commands;
  result.steps_with_other_commands =
      static_cast<int>(std::ranges::count(measured, true, &StepResult::has_other_commands));
  result.trace.metrics = figures_of_trained(measured, result.trace.program, device);
  result.trace.ledger = measured.front().ledger;
  note_refused_reloads(measured, result.trace);
  note_full_disk(measured, result.trace);
  note_compression(measured, result.trace);
  if (!request.has_timeline) co_return;
  co_await record_timeline(steps, request.policy, device, tracing, tracing_cost, result.trace);
}

void add_notes(Trace& trace, Device& device) {
  for (std::string& note : device.take_notes()) trace.notes.push_back(std::move(note));
}

}  // namespace offprof
