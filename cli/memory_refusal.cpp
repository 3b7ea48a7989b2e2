#include "cli/memory_refusal.h"

#include <fmt/format.h>

#include "cli/simulation_report.h"
#include "simulator/trace_steps.h"
#include "simulator/tune.h"
#include "simulator/views.h"

namespace offprof {
namespace {

/// `weights, optimizer state, inputs 1.2 GiB, gradients, temporaries 300 MiB, ...`
std::string content_text(const DeviceContent& content) {
  std::string text;
  for (const auto& [what, part] : content_parts())
    if (content.*part > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, format_bytes(content.*part));
  return text;
}

/// The policy's flags as `run` takes them.
std::string flags_of(const Policy& policy) {
  std::string flags = fmt::format("--threshold {} --stash {}", policy.threshold_bytes.value_or(0),
                                  policy.stash_count.value_or(0));
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
    return fmt::format("no policy fits: the least that any tried one takes is {}, with {}",
                       format_bytes(device_bytes_taken(least.predicted)), flags_of(least.policy));
  }
  if (!result.chosen->policy.threshold_bytes) return "nothing need be offloaded: --policy keep fits";
  return fmt::format("offprof tune finds that this fits: --policy offload {}",
                     flags_of(result.chosen->policy));
}

}  // namespace

Error memory_refusal_error(const RunResult& result) {
  const Trace& trace = result.trace;
  const MemoryRefusal& refusal = *result.refusal;
  const TraceSteps steps(trace);
  const Step& step = steps.step(trace.policy);
  const Prediction prediction = replay(step, trace.policy, trace.environment.link);
  const ProgramPlace place = place_of_event(steps.program(trace.policy), step, prediction.peak_event);
  const auto reserved = steps.predict(trace.policy, trace.environment.link).device_reserved_peak_bytes;
  std::string message = fmt::format(
      "out of device memory: {} asked for, {} live of {}. Under policy {} a step needs {}{}, in {}{}: {}",
      format_bytes(refusal.asked_bytes), format_bytes(refusal.live_bytes),
      format_bytes(refusal.capacity_bytes), trace.policy.name,
      format_bytes(*prediction.metrics.device_peak_bytes),
      reserved ? fmt::format(" (of the device {}, as PyTorch's allocator takes it)", format_bytes(*reserved))
               : "",
      place.phase, place.op.empty() ? "" : ", " + place.op,
      content_text(content_at_peak(step, trace.policy)));
  return environment_error(
      message,
      advice(steps, trace, refusal.capacity_bytes) +
          fmt::format("; for a trace of the whole step, whatever it needs: a larger --device-memory on a "
                      "virtual device, or none on host, then offprof tune --memory-budget {}",
                      refusal.capacity_bytes));
}

}  // namespace offprof
