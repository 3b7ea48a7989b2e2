#include "cli/reports/memory_refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/reports/next_command.h"
#include "cli/reports/simulation_report.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/tune.h"

namespace offprof {
namespace {

/// Returns `weights, optimizer state, inputs 1.2 GiB, gradients, temporaries 300 MiB, ...`.
std::string content_text(const DeviceContent& content) {
  std::string text;
  for (const auto& [what, part] : content_parts())
    if (content.*part > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_bytes(content.*part));
  return text;
}

/// Returns the policy as flags of `run`.
std::string flags_of(const Policy& policy) {
  std::string flags = fmt::format("--threshold {}", policy.threshold_bytes.value_or(0));
  if (policy.stash_bytes)
    flags += fmt::format(" --stash-bytes {}", *policy.stash_bytes);
  else
    flags += fmt::format(" --stash {}", policy.stash_count.value_or(0));
  if (policy.prefetch_bytes > 0) flags += fmt::format(" --prefetch {}", policy.prefetch_bytes);
  return flags;
}

std::string advice(const TraceSteps& steps, const Trace& trace, Bytes capacity) {
  TuneGoal goal;
  goal.memory_budget_bytes = capacity;
  goal.host_memory_bytes = trace.policy.host_memory_bytes;
  const TuneResult result = tune(steps, trace.environment.link, goal);
  if (!result.chosen) {
    const Candidate& least = least_memory(result);
    return fmt::format("no policy fits: the least memory of all tried policies is {}, with {}",
                       format_bytes(device_bytes_taken(least.predicted)), flags_of(least.policy));
  }
  const Policy& chosen = result.chosen->policy;
  if (chosen == preset_policy("keep") && chosen != trace.policy)
    return "no offloading is needed: --policy keep fits";
  const std::string time = format_duration(result.chosen->predicted.step_time_ns.value_or(0));
  if (chosen.threshold_bytes && chosen.rules.empty())
    return fmt::format("offprof tune found a policy that fits, with steps of {}: --policy offload {}", time,
                       flags_of(chosen));
  return fmt::format("offprof tune found a policy that fits, with steps of {}", time);
}

/// Returns ` to bring back saved tensor 12, float32[4, 128] of aten::relu`; empty if the memory was for
/// something else.
std::string purpose_text(const MemoryRefusal& refusal, const StepProgram& program) {
  if (!refusal.reloaded || static_cast<std::size_t>(*refusal.reloaded) >= program.saved.size()) return {};
  const SavedTensor& saved = program.saved[*refusal.reloaded];
  return fmt::format(" to reload saved tensor {}, {}[{}] of {}", *refusal.reloaded, saved.layout->dtype,
                     fmt::join(saved.layout->sizes, ", "), program.names[saved.op]);
}

/// Describes the refusal: of a request in a step, or of the step as a whole.
std::string refusal_text(const MemoryRefusal& refusal, const StepProgram& program) {
  const std::string live = format_bytes(refusal.live_bytes), capacity = format_bytes(refusal.capacity_bytes);
  if (refusal.asked_bytes > 0)
    return fmt::format("{} requested{}, with {} live of {}", format_bytes(refusal.asked_bytes),
                       purpose_text(refusal, program), live, capacity);
  if (!program.allocator) return fmt::format("before a step begins, {} live of {}", live, capacity);
  return fmt::format("before a step begins, PyTorch's allocator reserves {} for {} live, more than {}",
                     format_bytes(sum_up(*program.allocator).reserved), live, capacity);
}

/// Describes the memory that a step needs: its size, the place of its peak and the contents at the peak.
std::string need_text(const TraceSteps& steps, const Trace& trace) {
  const Explanation explanation = explain(steps, trace.policy, trace.environment.link);
  const ProgramPlace& place = explanation.peak_place;
  const Metrics metrics = steps.predict(trace.policy, trace.environment.link);
  std::string text = format_bytes(*metrics.device_peak_bytes);
  if (metrics.device_reserved_peak_bytes)
    text += fmt::format(", for which PyTorch's allocator reserves {} of device memory",
                        format_bytes(*metrics.device_reserved_peak_bytes));
  return text + fmt::format(". Its peak is in {}{}: {}", place.phase, place.op.empty() ? "" : ", " + place.op,
                            content_text(explanation.peak_content));
}

std::string how_to_trace(const Trace& trace, Bytes capacity) {
  return fmt::format(
      "; to see all policies that fit: run it {} -o t.json, then "
      "offprof tune t.json --memory-budget {}. offprof advise tries checkpointing too",
      trace.environment.times_are_modelled ? "with --device-memory 2TiB" : "without --device-memory",
      exact_bytes(capacity));
}

}  // namespace

Error memory_refusal_error(const RunResult& result) {
  const Trace& trace = result.trace;
  const Bytes capacity = result.refusal->capacity_bytes;
  const TraceSteps steps(trace);
  return environment_error(fmt::format("out of device memory: {}. Under policy {} a step needs {}",
                                       refusal_text(*result.refusal, steps.program(trace.policy)),
                                       trace.policy.name, need_text(steps, trace)),
                           advice(steps, trace, capacity) + how_to_trace(trace, capacity));
}

}  // namespace offprof
