#include "cli/commands/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/version.h"
#include "cli/options/disk_options.h"
#include "cli/options/options.h"
#include "cli/reports/lost_records.h"
#include "cli/reports/next_command.h"
#include "cli/reports/simulation_report.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/headline.h"
#include "cli/tables/ledger_table.h"
#include "cli/tables/metrics_table.h"
#include "cli/tables/step_size.h"
#include "engine/scheduler/command_log.h"
#include "engine/scheduler/placement_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/time_doubt.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

struct SimulateReport {
  std::string trace;
  Policy policy;
  Link link;
  Metrics predicted;
  Metrics without_offloading;
  std::optional<Bytes> device_memory_bytes;
  Ledger ledger;
  Explanation explanation;
  /// If the step does not fit, the words of the command that finds a policy that fits.
  std::vector<std::string> next;

  bool fits = true;  ///< true if the step fits into device_memory_bytes
  bool times_are_modelled = false;
  TimeDoubt doubt;
  std::string inexactness;  ///< concerns memory too; is also one of the warnings
  RunSettings settings;     ///< the settings with which the step was recorded
  StepSize step_size{};
};

nlohmann::ordered_json to_json(const SimulateReport& report) {
  nlohmann::ordered_json json = {{"simulated", true},
                                 {"trace", report.trace},
                                 {"policy", to_json(report.policy)},
                                 {"predicted", metrics_to_json(report.predicted)}};
  if (report.device_memory_bytes) {
    json["device_memory_bytes"] = *report.device_memory_bytes;
    json["fits"] = report.fits;
  }
  json.update(rate_to_json(report.step_size, report.predicted));
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  if (report.doubt.step) json["step_time_range_ns"] = to_json(*report.doubt.step);
  if (!report.inexactness.empty()) json["may_be_inexact"] = true;
  if (!report.settings.checkpointed.empty()) json["checkpoint"] = report.settings.checkpointed;
  if (report.settings.slices) json["slices"] = to_json(*report.settings.slices);
  if (!report.doubt.warnings.empty()) json["warnings"] = report.doubt.warnings;
  json["ledger"] = ledger_to_json(report.ledger);
  json.update(to_json(report.explanation));
  return json;
}

/// Returns the amount of memory by which the step is too large. Empty if the step fails for another reason,
/// for example because the allocator's settings limit it to a part of the device.
std::string excess_text(const SimulateReport& report) {
  const Bytes taken = device_bytes_taken(report.predicted);
  if (taken <= *report.device_memory_bytes) return "";
  const std::string excess = format_bytes(taken - *report.device_memory_bytes) + " too much";
  if (!report.predicted.device_reserved_peak_bytes) return ": " + excess;
  return fmt::format(": PyTorch's allocator reserves {}, {}", format_bytes(taken), excess);
}

std::string fits_text(const SimulateReport& report, const Page& page) {
  if (!report.device_memory_bytes) return "";
  const std::string memory = format_bytes(*report.device_memory_bytes);
  if (report.fits) return page.paint(Tone::kGood, "It fits into " + memory + ".") + "\n";
  const std::string refusal = fmt::format("It does not fit into {}{}.", memory, excess_text(report));
  return page.paint(Tone::kBad, wrap(refusal, page.width, 0)) + "\n" + next_line(report.next);
}

/// Returns the uncertainty of times; 0 if all digits are significant.
Nanoseconds unsure_by(const TimeDoubt& doubt) {
  return doubt.means_little ? doubt.step->high_ns - doubt.step->low_ns : 0;
}

/// Returns the range of a modelled time.
std::optional<TimeRange> modelled_range(const SimulateReport& report) {
  return report.times_are_modelled ? report.doubt.step : std::nullopt;
}

std::string doubt_text(const TimeDoubt& doubt, const Page& page) {
  if (!doubt.means_little) return "";
  const Nanoseconds unsure = unsure_by(doubt);
  const std::string text = fmt::format(
      "By the quartiles of the calibration, the step takes {} to {}: times are rounded to the digits that "
      "are "
      "certain.",
      duration_text(doubt.step->low_ns, unsure / 10), duration_text(doubt.step->high_ns, unsure / 10));
  return page.paint(Tone::kWarning, wrap(text, page.width, 0)) + "\n";
}

std::string to_text(const SimulateReport& report, const Page& page) {
  const std::string subject =
      fmt::format("{}, simulated under policy {}: {}; link {}", report.trace, report.policy.name,
                  describe(report.policy), link_text(report.link));
  const std::string verdict =
      headline(headline_figures(report.without_offloading), headline_figures(report.predicted),
               unsure_by(report.doubt), modelled_range(report)) +
      rate_beside(report.step_size, report.predicted);
  return page.paint(Tone::kStrong, wrap(verdict, page.width, 0)) + "\n" + fits_text(report, page) +
         wrap(subject, page.width, 0) + "\n\n" +
         metrics_table({{"predicted", report.predicted, unsure_by(report.doubt)}}, page) +
         doubt_text(report.doubt, page) + "\n" +
         (page.details ? ledger_table(report.ledger, page) + "\n" : "") +
         times_line(report.times_are_modelled, page, modelled_range(report).has_value()) +
         reruns_text(report.settings, page) + to_text(report.explanation, page, unsure_by(report.doubt));
}

class SimulateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    source_.add_to(app, "Trace of a run");
    policy_.add_to(app, "offload");
    add_assumed_link_option(
        app, link_,
        "Link to assume in each direction; shared: both directions share its bandwidth (default: the link "
        "that the run measured)");
    add_disk_bandwidth_option(app, disk_, "Disk to assume (default: the disk that the run measured)");
    add_capacity_option(app, "--device-memory", device_memory_,
                        "Check that the step fits into this much memory; exit status 1 if not",
                        kLeastDeviceMemory);
    add_force_option(app, force_);
    add_output_option(app, output_,
                      "File for a trace of the simulated step; .gz compresses it (default: none)");
    app.add_option("--commands", commands_path_,
                   "File for the scheduler's command log, one JSON object per line")
        ->type_name("FILE");
  }

  ExitStatus run(Context& context) override {
    const PolicyFile file = policy_.resolve();
    trace_path_ = source_.path();
    Trace trace = read_trace(trace_path_);
    const std::vector<std::string> lost_records = refuse_lost_records(trace, trace_path_, force_);
    std::vector<std::string> fallback_notes;
    const Policy policy =
        policy_for_step(file.policy, file.fallback ? std::optional(file.fallback->policy) : std::nullopt,
                        file.planned_step(), planned_step_of(trace), shell_word(trace_path_), fallback_notes);
    if (!output_.empty()) check_writable(output_);
    if (!commands_path_.empty()) check_writable(commands_path_);
    std::optional<MemoryCapacity> assumed;
    if (device_memory_) assumed = usable_of_device(trace, *device_memory_);
    const TraceSteps steps(trace, assumed);
    require_costs(trace, steps, policy);
    Link link = link_to_assume(link_, trace.environment.link);
    link.disk = disk_to_assume(disk_, trace, policy);
    SimulateReport report = simulate(steps, policy, link);
    report.doubt = doubt_times(trace, steps, policy, link);
    report.inexactness = steps.inexactness(policy);
    report.doubt.warnings.insert(report.doubt.warnings.begin(), lost_records.begin(), lost_records.end());
    std::ranges::move(fallback_notes, std::back_inserter(report.doubt.warnings));
    if (!report.inexactness.empty())
      report.doubt.warnings.insert(report.doubt.warnings.begin(), report.inexactness);
    std::ranges::copy(steps.step(policy).place(policy).warnings, std::back_inserter(report.doubt.warnings));
    context.warn(report.doubt.warnings);
    report.times_are_modelled = trace.environment.times_are_modelled;
    report.settings = trace.settings;
    report.step_size = step_size(trace);
    if (!commands_path_.empty())
      context.print(format_command_log(replay_commands(steps.step(policy), policy)), commands_path_);
    if (!output_.empty()) {
      mark_simulated(trace, context, report);
      trace.timeline = replay_timeline(steps.program(policy), steps.step(policy), policy, link);
      write_trace(output_, trace);
    }
    context.publish_beside(report, output_ == "-" ? output_ : commands_path_);
    return report.fits ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

 private:
  /// Throws Error (input) if the trace lacks costs that the policy's rules need. Its hint is the run that
  /// measures them.
  void require_costs(const Trace& trace, const TraceSteps& steps, const Policy& policy) const {
    try {
      steps.step(policy).place(policy);
    } catch (const NotRecorded& error) {
      std::vector<std::string> words = run_with_policy(trace, policy_.name());
      words.insert(words.end(), {"-o", "trace.json"});
      throw input_error(error.what(), "Record it: " + command_line(words, variables_of_run(trace)));
    }
  }

  SimulateReport simulate(const TraceSteps& steps, const Policy& policy, const Link& link) const {
    SimulateReport report;
    report.trace = trace_path_;
    report.policy = policy;
    report.link = link;
    report.predicted = steps.predict(policy, link);
    report.without_offloading = steps.predict(preset_policy("keep"), link);
    report.device_memory_bytes = device_memory_;
    if (device_memory_) report.fits = steps.fits(policy, *device_memory_);
    report.ledger = replay_ledger(steps.program(policy), steps.step(policy), policy);
    report.explanation = explain(steps, policy, link);
    report.next = {"tune", trace_path_, "--device-memory", exact_bytes(device_memory_.value_or(0))};
    if (link_) report.next.insert(report.next.end(), {"--link", exact_link(*link_)});
    if (disk_) report.next.insert(report.next.end(), {"--disk-bandwidth", exact_disk(*disk_)});
    if (force_) report.next.emplace_back("--force");
    return report;
  }

  static void mark_simulated(Trace& trace, const Context& context, const SimulateReport& report) {
    trace.simulated = true;
    trace.tool_version = program_version();
    trace.argv = context.argv();
    trace.policy = report.policy;
    trace.environment.link = report.link;
    trace.metrics = report.predicted;
    trace.ledger = report.ledger;
    trace.gradients.clear();
    trace.gradient_errors.clear();
    // The steps of the run from which the trace was simulated.
    if (trace.tracing) trace.tracing->steps.clear();
  }

  TraceArgument source_;
  std::string trace_path_;
  PolicyOptions policy_;
  std::optional<Link> link_;
  std::optional<DiskLink> disk_;
  std::optional<Bytes> device_memory_;
  bool force_ = false;
  std::string output_;
  std::string commands_path_;
};

}  // namespace

std::unique_ptr<Subcommand> make_simulate_command() {
  return std::make_unique<SimulateCommand>();
}

}  // namespace offprof
