#include "cli/snapshots/snapshot_export.h"

#include <fmt/format.h>

#include "cli/reports/next_command.h"
#include "cli/reports/view_report.h"
#include "cli/tables/figure_text.h"
#include "simulator/report/memory_snapshot.h"
#include "simulator/report/step_record.h"
#include "simulator/steps/trace_steps.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {

SnapshotExport export_snapshot(const std::string& trace_path, const std::optional<PolicyFile>& policy,
                               const std::optional<Link>& link, const std::string& output) {
  if (output == "-")
    throw input_error("a memory snapshot is a binary file, which is not printed",
                      "Name a file: -o snapshot.pickle");
  const Trace trace = read_trace(trace_path);
  if (policy)
    refuse_foreign_plan(policy->policy, policy->planned_step(), planned_step_of(trace),
                        shell_word(trace_path));
  const Policy& used = policy ? policy->policy : trace.policy;
  const TraceSteps steps(trace);
  const StepProgram& program = steps.program(used);
  const StepRecord record =
      record_step(program, steps.step(used), used, link ? *link : usable_link(trace.environment.link));
  const std::string snapshot = memory_snapshot(program, record);
  write_file(output, snapshot);
  return {.trace = trace_path,
          .snapshot = output,
          .file_bytes = static_cast<Bytes>(snapshot.size()),
          .device_peak_bytes = peak_of(record),
          .reserved_peak_bytes = steps.with_cache(used, record.prediction.metrics).device_reserved_peak_bytes,
          .times_are_modelled = trace.environment.times_are_modelled};
}

nlohmann::ordered_json to_json(const SnapshotExport& result) {
  nlohmann::ordered_json json = {
      {"target", kMemorySnapshot},
      {"trace", result.trace},
      {"policy",
       result.policy_name.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(result.policy_name)},
      {"snapshot", result.snapshot},
      {"snapshot_bytes", result.file_bytes},
      {"device_peak_bytes", result.device_peak_bytes}};
  if (result.reserved_peak_bytes) json["device_reserved_peak_bytes"] = *result.reserved_peak_bytes;
  if (result.times_are_modelled) json["times_are_modelled"] = true;
  return json;
}

std::string to_text(const SnapshotExport& result, const Page& page) {
  const std::string policy = result.policy_name.empty() ? "its own policy" : "policy " + result.policy_name;
  std::string peak = format_bytes(result.device_peak_bytes);
  if (result.reserved_peak_bytes)
    peak += fmt::format(", {} reserved", format_bytes(*result.reserved_peak_bytes));
  return wrap(fmt::format("{} ({}): the step of {} under {}, simulated; peak {}.", result.snapshot,
                          format_bytes(result.file_bytes), result.trace, policy, peak),
              page.width, 0) +
         "\n" +
         wrap(
             "Open it with PyTorch's memory visualizer, https://pytorch.org/memory_viz, or write a page of "
             "it: "
             "python -m torch.cuda._memory_viz trace_plot " +
                 shell_word(result.snapshot) + " -o snapshot.html",
             page.width, 0) +
         "\n" + times_line(result.times_are_modelled, page);
}

}  // namespace offprof
