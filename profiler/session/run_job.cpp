#include "profiler/session/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/scheduler/placement_rules.h"
#include "engine/torch/torch_error.h"
#include "profiler/recording/gpu_figures.h"
#include "profiler/recording/interleaved.h"
#include "profiler/recording/measured.h"
#include "profiler/recording/timeline_builder.h"
#include "profiler/session/job.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Number of steps in the trace's timeline. They come after the measured ones, since recording takes time.
constexpr int kStepsShown = 2;

/// Adds the device's notes to the trace.
void add_notes(Trace& trace, Device& device) {
  for (std::string& note : device.take_notes()) trace.notes.push_back(std::move(note));
}

/// Records two steps for the trace's timeline, with the GPU's tracer if there is one, and stores the results.
/// The step before them is not shown: it allocates device memory anew, since the cache was released, and
/// CUPTI instruments kernels at their first launch.
void record_timeline(Job& job, const Policy& policy, const Device& device, const StepTracing* tracing,
                     Trace& trace) {
  const auto used_before = used_beside_allocator(device);
  std::vector<StepResult> steps = job.train(policy, 1 + kStepsShown, Recording::kTimeline);
  steps.erase(steps.begin());
  const auto used_after = used_beside_allocator(device);
  trace.timeline = build_timeline(steps);
  if (tracing == nullptr || !tracing->is_on()) return;
  std::optional<TracingCost> cost;
  if (!trace.environment.times_are_modelled) cost = job.tracing_cost(policy);
  trace.tracing = tracing->summary();
  if (!trace.tracing) return;
  trace.tracing->cost = cost;
  if (used_before) trace.tracing->device_bytes = std::max<Bytes>(*used_after - *used_before, 0);
  for (const StepResult& step : steps)
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

void measure(Job& job, const RunRequest& request, const Device& device, const Progress& progress,
             const StepTracing* tracing, RunResult& result) {
  progress("checking gradients");
  GradientCheck gradients = job.check_gradients(request.policy);
  result.trace.gradients = std::move(gradients.verdict);
  result.trace.gradient_errors = std::move(gradients.errors);
  job.forget_gradients();
  const std::vector<StepResult> measured =
      job.train(request.policy, request.settings.steps, Recording::kNone);
  result.commands = measured.front().commands;
  result.steps_with_other_commands =
      static_cast<int>(std::ranges::count(measured, true, &StepResult::has_other_commands));
  result.trace.metrics = summarize(measured);
  result.trace.ledger = measured.front().ledger;
  note_refused_reloads(measured, result.trace);
  note_full_disk(measured, result.trace);
  note_compression(measured, result.trace);
  record_timeline(job, request.policy, device, tracing, result.trace);
}

std::string describe(const OutOfMemory& refusal) {
  const std::string asked =
      refusal.asked_bytes > 0 ? format_bytes(refusal.asked_bytes) + " requested, " : "before a step begins, ";
  const std::string of =
      refusal.capacity_bytes ? " of " + format_bytes(*refusal.capacity_bytes) : std::string();
  return "out of device memory: " + asked + format_bytes(refusal.live_bytes) + " live" + of;
}

Error out_of_memory(const OutOfMemory& refusal) {
  const std::string message = describe(refusal);
  if (!refusal.capacity_bytes)
    return environment_error(
        message,
        "the recorded passes may use the whole device: use a smaller batch, or --device virtual, "
        "whose memory is unlimited in these passes; per_process_memory_fraction in "
        "PYTORCH_CUDA_ALLOC_CONF reduces the memory that they may use");
  return environment_error(message,
                           "find a policy that fits: record a trace without --device-memory, with -o t.json, "
                           "then: offprof tune t.json --memory-budget " +
                               std::to_string(*refusal.capacity_bytes) + "B");
}

void require_disk(const Policy& policy, Device& device) {
  if (!uses_disk(policy) || device.disk() != nullptr) return;
  throw input_error("the policy places tensors on a disk, but no disk was given",
                    device.is_virtual()
                        ? "Give the speed of the modelled disk: --disk-bandwidth 2GB/s"
                        : "Give a folder for them: --disk DIR, or write `compress` for `disk` "
                          "in its rules to keep them compressed in host memory");
}

RunResult run(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing) {
  require_disk(request.policy, device);
  const auto prepared = prepare_job(request, device, progress, tracing);
  Job& job = *prepared;
  RunResult result;
  result.trace = job.trace();
  result.trace.policy = request.policy;
  device.take_out_of_memory();
  auto refusal = job.refusal_beforehand();
  std::optional<SavedId> reloaded;
  try {
    if (!refusal) measure(job, request, device, progress, tracing, result);
  } catch (const std::exception& error) {
    lift_limits(device);
    refusal = device.take_out_of_memory();
    if (!refusal) throw;
    if (!refusal->capacity_bytes) throw out_of_memory(*refusal);
    if (const auto* reload = dynamic_cast<const ReloadOutOfMemory*>(&error)) reloaded = reload->tensor();
  }
  if (refusal)
    result.refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, reloaded};
  if (auto& memory = result.trace.environment.beside_allocator)
    memory->end_bytes = *used_beside_allocator(device);
  add_notes(result.trace, device);
  if (tracing != nullptr)
    for (std::string& note : tracing->take_notes()) result.trace.notes.push_back(std::move(note));
  return result;
}

/// Runs `work`. Returns a message if the device ran out of memory; the device is then as before.
template <typename Work>
std::string unless_out_of_memory(Device& device, const Work& work) {
  device.take_out_of_memory();
  try {
    work();
    return {};
  } catch (const std::exception&) {
    lift_limits(device);
    const auto refusal = device.take_out_of_memory();
    if (!refusal) throw;
    become_idle(device);
    return describe(*refusal);
  }
}

ComparisonResult compare(const RunRequest& request, const Comparison& comparison, Device& device,
                         const Progress& progress) {
  RunRequest all = request;
  for (const ComparedPolicy& compared : comparison.policies) {
    require_disk(compared.policy, device);
    std::ranges::copy(transforms_in(compared.policy.rules), std::back_inserter(all.transforms));
    if (recomputes(compared.policy)) all.transforms.emplace_back("recompute");
  }
  const auto prepared = prepare_job(all, device, progress);
  Job& job = *prepared;
  ComparisonResult result;
  result.trace = job.trace();
  if (const auto refusal = job.refusal_beforehand()) throw out_of_memory(*refusal);
  for (const ComparedPolicy& compared : comparison.policies) {
    PolicyRun& run = result.runs.emplace_back();
    run.policy = compared.policy;
    run.out_of_memory =
        unless_out_of_memory(device, [&] { run.gradients = job.check_gradients(run.policy).verdict; });
  }
  job.forget_gradients();
  measure_interleaved({[&](const Policy& policy, int steps) {
                         VisitResult visit;
                         visit.out_of_memory = unless_out_of_memory(
                             device, [&] { visit.steps = job.train(policy, steps, Recording::kNone); });
                         return visit;
                       },
                       [&] { return device.core_to_core_ns(); }, progress},
                      comparison, result);
  add_notes(result.trace, device);
  return result;
}

/// Returns `error` with the device's notes: a model may have failed because it read zeros.
Error with_notes(const Error& error, Device& device) {
  std::string hint = error.hint();
  for (const std::string& note : device.take_notes()) hint += (hint.empty() ? "" : "; ") + note;
  return {error.kind(), error.what(), hint};
}

/// Runs `work` and converts exceptions of LibTorch to Error.
template <typename Work>
auto translating_errors(const RunRequest& request, Device& device, Work work) {
  try {
    device.take_out_of_memory();
    device.take_host_refusal();
    device.take_stream_refusal();
    device.take_model_refusal();
    return work();
  } catch (const std::exception& error) {
    lift_limits(device);
    if (const auto refusal = device.take_stream_refusal()) throw Error(*refusal);
    if (const auto refusal = device.take_model_refusal()) throw Error(*refusal);
    if (const auto refusal = device.take_host_refusal()) throw Error(*refusal);
    if (DeviceDisk* const disk = device.disk())
      if (const auto failure = disk->take_failure()) throw Error(*failure);
    if (const auto refusal = device.take_out_of_memory()) throw out_of_memory(*refusal);
    if (const auto* ours = dynamic_cast<const Error*>(&error)) throw with_notes(*ours, device);
    throw with_notes(input_error(request.model_path + ": LibTorch stopped: " + readable_reason(error)),
                     device);
  }
}

}  // namespace

RunResult run_job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing) {
  return translating_errors(request, device, [&] { return run(request, device, progress, tracing); });
}

ComparisonResult comparison_job(const RunRequest& request, const Comparison& comparison, Device& device,
                                const Progress& progress) {
  return translating_errors(request, device, [&] { return compare(request, comparison, device, progress); });
}

}  // namespace offprof
