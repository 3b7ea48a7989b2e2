#include "cli/validation/script_settings.h"

#include <fmt/format.h>

#include <utility>

#include "cli/plugin/scratch_folder.h"
#include "cli/plugin/script_runner.h"
#include "engine/scheduler/command_log.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr std::size_t kMostCommandBytes = std::size_t{1} << 30U;

std::string describe(const MemoryRefusal& refusal) {
  return fmt::format("out of device memory: {} requested, {} live of {}", format_bytes(refusal.asked_bytes),
                     format_bytes(refusal.live_bytes), format_bytes(refusal.capacity_bytes));
}

ScriptRun run_setting(ScriptRequest request, const std::string& python, const Policy& policy) {
  request.run.policy = policy;
  try {
    ScriptRun run = record_script(std::move(request), python, CommandOutput::kDiscarded);
    if (run.signal != 0) throw EndedBySignal{run.signal};
    return run;
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}; under the policy {}", error.what(), describe(policy)),
                error.hint());
  }
}

PolicyRun result_of(const ScriptRun& run, const Policy& policy, const std::string& commands_path,
                    const TraceSteps& steps) {
  PolicyRun result;
  result.policy = policy;
  if (run.outcome.refusal) {
    result.out_of_memory = describe(*run.outcome.refusal);
    return result;
  }
  result.measured = run.trace.metrics;
  result.gradients = run.trace.gradients;
  result.commands = replay_commands(steps.step(policy), policy);
  const bool differs = read_file(commands_path, kMostCommandBytes) != format_command_log(result.commands);
  result.steps_with_other_commands = run.outcome.steps_with_other_commands + (differs ? 1 : 0);
  if (run.trace.metrics.step_time_ns) result.step_times_ns = {*run.trace.metrics.step_time_ns};
  return result;
}

}  // namespace

ComparisonResult run_script_settings(Context& context, const ScriptRequest& request,
                                     const std::string& python, const std::vector<ComparedPolicy>& policies,
                                     const Trace& trace) {
  const TraceSteps steps(trace);
  const ScratchFolder folder;
  ScriptRequest each = request;
  each.run.policy_made_for = fingerprint_of_run(trace.model, trace.settings);
  each.trace_path.clear();
  each.progress = context.options().verbose ? ShownProgress::kSteps : ShownProgress::kNothing;
  each.commands_path = folder.file("commands.jsonl");
  ComparisonResult result;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const Policy& policy = policies[i].policy;
    context.note(fmt::format("setting {} of {}: {}", i + 1, policies.size(), describe(policy)));
    ScriptRun run = run_setting(each, python, policy);
    result.runs.push_back(result_of(run, policy, each.commands_path, steps));
    result.trace = std::move(run.trace);
  }
  return result;
}

}  // namespace offprof
