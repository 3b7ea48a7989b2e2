#include "profiler/session/run_job.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/scheduler/placement_rules.h"
#include "profiler/recording/interleaved.h"
#include "profiler/session/job.h"
#include "profiler/stages/measure_policy.h"
#include "profiler/stages/record_run.h"
#include "profiler/stages/step_error.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

void measure(Job& job, const RunRequest& request, const Progress& progress, StepTracing* tracing,
             RunResult& result) {
  progress("checking gradients");
  GradientCheck gradients = job.check_gradients(request.policy);
  result.trace.gradients = std::move(gradients.verdict);
  result.trace.gradient_errors = std::move(gradients.errors);
  job.forget_gradients();
  job.measure(request, tracing, result);
}

RunResult run(RunRequest request, Device& device, const Progress& progress, StepTracing* tracing) {
  require_disk(request.policy, device);
  const auto prepared = prepare_job(request, device, progress, tracing);
  Job& job = *prepared;
  RunResult result;
  result.trace = job.trace();
  request.policy = result.trace.policy;
  device.take_out_of_memory();
  auto refusal = job.refusal_beforehand();
  std::optional<SavedId> reloaded;
  try {
    if (!refusal) measure(job, request, progress, tracing, result);
  } catch (const std::exception& error) {
    lift_limits(device);
    refusal = device.take_out_of_memory();
    if (!refusal) throw;
    if (!refusal->capacity_bytes) throw out_of_memory_error(*refusal);
    if (const auto* reload = dynamic_cast<const ReloadOutOfMemory*>(&error)) reloaded = reload->tensor();
  }
  if (refusal)
    result.refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, reloaded};
  if (auto& memory = result.trace.environment.beside_allocator)
    memory->end_bytes = *device.used_beside_allocator();
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
  if (const auto refusal = job.refusal_beforehand()) throw out_of_memory_error(*refusal);
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

/// Runs `work` and converts exceptions of LibTorch to Error.
template <typename Work>
auto translating_errors(const RunRequest& request, Device& device, Work work) {
  forget_refusals(device);
  try {
    return work();
  } catch (const std::exception& error) {
    throw step_error(error, device, request.model_path);
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
