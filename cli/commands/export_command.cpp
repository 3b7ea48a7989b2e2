#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/advice/recorded_run.h"
#include "cli/commands/commands.h"
#include "cli/options/disk_options.h"
#include "cli/options/options.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/next_command.h"
#include "cli/snapshots/snapshot_export.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/metrics_table.h"
#include "engine/scheduler/placement_rules.h"
#include "simulator/other_engines/engine_export.h"
#include "simulator/steps/trace_steps.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

struct ExportReport {
  const ExportTarget* target = nullptr;
  std::string policy_name{}, trace{};
  Policy policy{};
  EngineExport result{};
  Metrics offprof{};                ///< predicted figures of the policy under offprof
  std::optional<Metrics> engine{};  ///< figures of the other engine; nullopt: not known
  bool is_recorded = false;         ///< `engine` was measured by a run, and not predicted
  std::string output{};             ///< file of the snippet; empty: the report shows it
  std::string inexactness{};        ///< empty: the engine's figures are exact
  bool times_are_modelled = false;
};

nlohmann::ordered_json to_json(const ExportReport& report) {
  nlohmann::ordered_json json = {
      {"target", report.target->name},    {"trace", report.trace},
      {"policy", to_json(report.policy)}, {"settings", report.result.settings},
      {"snippet", report.result.snippet}, {"predicted", metrics_to_json(report.offprof)}};
  if (report.is_recorded) {
    json["engine_measured"] = metrics_to_json(*report.engine);
  } else if (report.engine) {
    json["engine_policy"] = to_json(*report.result.simulated);
    json["engine_predicted"] = metrics_to_json(*report.engine);
  } else {
    json["no_figures"] = report.result.no_figures;
  }
  if (!report.inexactness.empty()) json["may_be_inexact"] = true;
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  json["differences"] = report.result.differences;
  return json;
}

std::string figures_text(const ExportReport& report, const Page& page) {
  const std::string title(report.target->title);
  std::vector<MetricsColumn> columns = {{"offprof", report.offprof}};
  if (report.engine) columns.push_back({title, *report.engine});
  std::string note;
  if (!report.engine) note = fmt::format("No figures of {}: {}", title, report.result.no_figures);
  if (report.is_recorded)
    note = fmt::format("The figures of {} are those of a run of the program with the settings below.", title);
  return metrics_table(columns, page) + (note.empty() ? "" : wrap(note, page.width, 0) + "\n");
}

std::string to_text(const ExportReport& report, const Page& page) {
  std::string text = wrap(fmt::format("Policy {} ({}) for {}, on the step of {}", report.policy_name,
                                      describe(report.policy), report.target->title, report.trace),
                          page.width, 0) +
                     "\n\n" + figures_text(report, page) + times_line(report.times_are_modelled, page);
  if (!report.result.differences.empty()) {
    text += fmt::format("\nDifferences between the policy and {}:\n", report.target->title);
    for (const std::string& difference : report.result.differences)
      text += "- " + wrap(difference, page.width - 2, 2) + "\n";
  }
  if (report.output.empty())
    return text + fmt::format("\n{}:\n\n{}", report.target->language, report.result.snippet);
  return text;
}

class ExportCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option(
           "policy", subject_,
           "Policy file, or name of a preset; for memory-snapshot also a trace, in place of --trace: its "
           "own policy")
        ->type_name("POLICY")
        ->required();
    app.add_option("-t,--trace", trace_path_, "Trace of a run: the step that the policy is for")
        ->type_name("FILE");
    std::vector<std::pair<std::string, const ExportTarget*>> targets;
    for (const ExportTarget& target : export_targets()) targets.emplace_back(target.name, &target);
    targets.emplace_back(kMemorySnapshot, nullptr);
    add_choice_option(
        app, "--to", target_, targets,
        "Engine to write the settings for, or memory-snapshot: the memory of the step for PyTorch's "
        "memory visualizer")
        ->required();
    app.add_flag(
        "--record", records_,
        "pytorch: record the training script of the trace again with the settings, for their figures");
    add_assumed_link_option(app, link_, "Link to assume (default: the link that the run measured)");
    add_disk_bandwidth_option(app, disk_, "Disk to assume (default: the disk that the run measured)");
    add_output_option(
        app, output_,
        "File for the settings alone (default: the report shows them), or for the snapshot (default "
        "snapshot.pickle)");
  }

  ExitStatus run(Context& context) override {
    if (target_ == nullptr) return write_snapshot(context);
    try {
      return write_settings(context);
    } catch (const EndedBySignal& end) {
      return status_of_signal(end.signal);
    }
  }

 private:
  ExitStatus write_settings(Context& context) const {
    if (trace_path_.empty())
      throw input_error("--trace is missing: the settings are for the step of a trace",
                        fmt::format("Add it: offprof export {} --trace t.json --to {}", shell_word(subject_),
                                    target_->name));
    if (!output_.empty()) check_writable(output_);
    const PolicyFile file = load_policy(subject_);
    const Trace trace = read_trace(trace_path_);
    refuse_foreign_plan(file.policy, file.planned_step(), planned_step_of(trace), shell_word(trace_path_));
    if (records_) check_can_record(trace);
    const TraceSteps steps(trace);
    ExportReport report = make_report(file, trace, steps);
    if (!report.inexactness.empty()) context.warn(report.inexactness);
    context.warn(steps.step(file.policy).place(file.policy).warnings);
    if (!output_.empty()) context.print(report.result.snippet, output_);
    context.publish_beside(report, output_);
    return ExitStatus::kOk;
  }

  ExitStatus write_snapshot(Context& context) const {
    const std::string output = output_.empty() ? "snapshot.pickle" : output_;
    check_writable(output);
    const bool has_policy = !trace_path_.empty();
    std::optional<PolicyFile> policy;
    if (has_policy) policy = load_policy(subject_);
    SnapshotExport result = export_snapshot(has_policy ? trace_path_ : subject_, policy, link_, output);
    if (has_policy) result.policy_name = subject_;
    context.publish(result);
    return ExitStatus::kOk;
  }

  ExportReport make_report(const PolicyFile& file, const Trace& trace, const TraceSteps& steps) const {
    const Policy& policy = file.policy;
    const PolicyUse use(steps.program(policy), steps.step(policy), policy);
    ExportReport report{.target = target_, .policy_name = subject_, .trace = trace_path_};
    report.policy = policy;
    report.result = target_->make({subject_, file, trace, use});
    Link link = link_to_assume(link_, trace.environment.link);
    link.disk = disk_to_assume(disk_, trace, policy);
    report.offprof = steps.predict(policy, link);
    if (records_) {
      report.engine = record_with(report.result.snippet, trace);
      report.is_recorded = true;
    } else if (report.result.simulated) {
      report.engine = steps.predict(*report.result.simulated, link);
      report.inexactness = steps.inexactness(*report.result.simulated);
    }
    report.output = output_;
    report.times_are_modelled = trace.environment.times_are_modelled;
    return report;
  }

  /// Records the program of the trace again with the code applied. Returns the figures of the run. Throws
  /// Error if that fails.
  static Metrics record_with(const std::string& code, const Trace& trace) {
    const ScratchFolder folder;
    const std::string code_path = folder.file("exported.py"), path = folder.file("trace.json");
    write_file(code_path, code);
    // The code checkpoints the modules.
    const std::vector<std::string> as_before = without_checkpointing(run_with_policy(trace, "keep"));
    const Variables variables = variables_of_run(trace);
    run_recording(
        with_options(as_before, {"--apply", code_path, "-q", "-o", path}), variables,
        "the program with the settings",
        "The run was that of the trace, with the exported code: " + command_line(as_before, variables));
    return of_program(read_trace(path).metrics);
  }

  /// Returns the figures of a run without those of offprof's own copies, which are none: the program copies.
  static Metrics of_program(const Metrics& run) {
    Metrics metrics;
    metrics.device_peak_bytes = run.device_peak_bytes;
    metrics.device_resident_bytes = run.device_resident_bytes;
    metrics.device_allocated_peak_bytes = run.device_allocated_peak_bytes;
    metrics.device_reserved_peak_bytes = run.device_reserved_peak_bytes;
    metrics.step_time_ns = run.step_time_ns;
    return metrics;
  }

  /// Throws Error (input) if the program of the trace cannot be recorded with the settings.
  void check_can_record(const Trace& trace) const {
    if (!target_->can_be_recorded)
      throw input_error(fmt::format("--record is for pytorch, and not for {}", target_->name));
    if (trace.settings.loss != kOfScript)
      throw input_error("--record is for traces of training scripts, and this one is of " + trace.model.name);
    if (std::ranges::find(trace.argv, "--world-size") != trace.argv.end())
      throw input_error("--record is for traces of one process, and this one is of a rank of many");
  }

  std::string subject_, trace_path_, output_;
  bool records_ = false;
  const ExportTarget* target_ = nullptr;  ///< nullptr: a memory snapshot
  std::optional<Link> link_;
  std::optional<DiskLink> disk_;
};

}  // namespace

std::unique_ptr<Subcommand> make_export_command() {
  return std::make_unique<ExportCommand>();
}

}  // namespace offprof
