#include "cli/commands/commands.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/base/version.h"
#include "cli/options/device_options.h"
#include "cli/options/disk_options.h"
#include "cli/options/options.h"
#include "cli/options/script_options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/plugin/script_runner.h"
#include "cli/reports/lost_records.h"
#include "cli/reports/next_command.h"
#include "cli/reports/validate_report.h"
#include "cli/validation/script_settings.h"
#include "cli/validation/validate_runs.h"
#include "profiler/plugin/plugin.h"
#include "simulator/steps/time_doubt.h"
#include "simulator/steps/trace_steps.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

constexpr std::int64_t kLeastPolicies = 3, kMostPolicies = 10'000;
/// Default numbers of settings. A script runs from its beginning for each.
constexpr std::int64_t kModelPolicies = 30, kScriptPolicies = 8;
constexpr std::int64_t kDefaultRounds = 7, kMostRounds = 10'000;

/// Returns the kind of a device. Predictions for one device can hold for others of its kind: for GPUs of any
/// number, and for virtual GPUs of the same profile.
std::string kind_of(const std::string& device) {
  return device.starts_with("virtual:") ? device : device.substr(0, device.find(':'));
}

class ValidateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    program_.add_to(app,
                    "Model or training script of the trace; arguments of a script that are not given are "
                    "those of the trace");
    add_trace_option(app, trace_path_,
                     "Trace to predict from; inputs, device and all other settings are those of the trace");
    add_count_option(
        app, "--policies", policies_, kLeastPolicies, kMostPolicies,
        "Number of settings to run, spread over the range of policies (default 30; of a script 8, since "
        "each is a run of its own)");
    add_count_option(app, "--rounds", rounds_, 1, kMostRounds,
                     "Models: runs of each setting, interleaved with the other settings (default 7)");
    add_share_option(app, "--max-mean-error", bounds_.mean_error,
                     "Upper bound on the mean error of the step time (default 3%): exit status 1 beyond it. "
                     "If noise hides "
                     "whether the bound holds, the report says so and the exit status is 0");
    add_share_option(app, "--max-p95-error", bounds_.p95_error,
                     "Upper bound on the 95th percentile of the same error (default 8%)");
    add_share_option(app, "--min-tau", bounds_.kendall_tau,
                     "Lower bound on Kendall's tau between predicted and measured step times (default 0.95)");
    device_.add_to(app);
    add_link_option(app, link_,
                    "host, virtual: run with this link instead of the trace's, and predict for it");
    disk_.add_to(app);
    app.add_option("--offload-params-dir", request_.parameters_folder,
                   "For a trace with parameters on the disk: folder for the file of parameters")
        ->type_name("DIR");
    add_force_option(app, force_);
    add_output_option(app, output_, "File for the report (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    program_.choose_program(context.argv());
    Trace trace = read_trace(trace_path_);
    if (trace.simulated)
      throw input_error(trace_path_ + " is simulated: it contains no measurements to predict from",
                        "Record one with: " + recording());
    lost_records_ = refuse_lost_records(trace, trace_path_, force_);
    if (program_.is_script()) make_script_request(context, trace);
    request_.model_path = program_.program();
    refuse_other_model(trace);
    refuse_faster_link(trace);
    if (compares_times(trace))
      context.warn(
          doubt_times(trace, TraceSteps(trace), preset_policy("offload"), link_between(trace)).warnings);
    trace = make_request(std::move(trace));
    try {
      const ValidationReport report = compare(context, std::move(trace));
      context.publish(report, output_);
      return report.outcome() == Outcome::kDoNotHold ? ExitStatus::kCheckFailed : ExitStatus::kOk;
    } catch (const EndedBySignal& end) {
      return status_of_signal(end.signal);
    }
  }

 private:
  /// Rejects a link that is faster than the trace's cap: the trace does not know the speed without the cap.
  void refuse_faster_link(const Trace& trace) const {
    const auto& cap = trace.settings.link_cap;
    if (!link_ || !cap || slower_of(*link_, *cap) == *link_) return;
    throw input_error("--link: the trace was recorded with a slower --link",
                      "Record it without --link: " + recording());
  }

  /// Adapts the trace to the runs: under a cap of the device's memory most settings could not run.
  Trace make_request(Trace trace) {
    if (const auto& cap = trace.settings.device_memory_bytes)
      notes_.push_back(
          fmt::format("The trace was recorded with --device-memory {}; the settings run without "
                      "that cap.",
                      *cap));
    trace.settings.device_memory_bytes = std::nullopt;
    if (!program_.is_script()) trace = as_visited(std::move(trace));
    request_.settings = trace.settings;
    request_.threads = trace.environment.threads;
    if (link_) request_.settings.link_cap = link_;
    return trace;
  }

  ValidationReport compare(Context& context, Trace trace) {
    const Link link = link_between(trace);
    choose_disk(trace);
    const DiskLink& known = trace.environment.link.disk;
    const auto disk = request_.disk && known.is_known() ? std::optional(known.place()) : std::nullopt;
    const std::int64_t policies = policies_.value_or(program_.is_script() ? kScriptPolicies : kModelPolicies);
    const auto rounds = static_cast<int>(program_.is_script() ? 1 : rounds_.value_or(kDefaultRounds));
    const ValidationRuns runs = choose_runs(trace, link, static_cast<std::size_t>(policies), rounds, disk);
    const ComparisonResult result = program_.is_script() ? run_script(context, trace, runs.comparison)
                                                         : run_engine(context, trace, runs.comparison);
    context.warn(result.trace.notes);
    ValidationReport report =
        judge_runs(std::move(trace), link, result, rounds,
                   program_.is_script() ? ValidationMethod::kOneByOne : ValidationMethod::kInterleaved);
    report.trace = trace_path_;
    report.bounds = bounds_;
    report.warnings.insert(report.warnings.begin(), lost_records_.begin(), lost_records_.end());
    report.left_out = runs.left_out;
    report.notes = notes_;
    if (runs.left_out > 0)
      report.notes.push_back(
          fmt::format("{} more settings do not fit into device memory and are left out.", runs.left_out));
    if (runs.inexact > 0)
      report.notes.push_back(
          fmt::format("{} more settings of TRL's rules reload only some of the tensors whose layout a reload "
                      "changes. The "
                      "trace has no step program for them, so they are left out.",
                      runs.inexact));
    return report;
  }

  /// Configures the disk. Settings with a disk run only if there is a disk and the trace contains its speed.
  void choose_disk(const Trace& trace) {
    if (device_.is_auto()) device_.choose(trace.environment.device);
    request_.disk = disk_.request(trace.environment.device, {});
    const DiskLink& known = trace.environment.link.disk;
    if (request_.disk && !known.is_known())
      throw input_error(
          trace_path_ + " does not contain the speed of a disk, so times with a disk cannot be predicted",
          fmt::format("Record it with: {} {} --transforms all", recording(),
                      disk_flag(request_.disk->compressed)));
    if (trace.environment.times_are_modelled && known.is_known())
      request_.disk = DiskRequest{{}, false, known, known.is_compressed};
    if (request_.disk && request_.disk->compressed != known.is_compressed)
      throw input_error(fmt::format("{} contains the speed of {} only", trace_path_, describe(known)),
                        fmt::format("Use {}.", disk_flag(known.is_compressed)));
    request_.device = trace.environment.device;
    share_disk_with_parameters(request_);
    if (known.is_known() && !request_.disk)
      notes_.push_back(fmt::format("The trace was recorded with {}; without {} no setting uses it.",
                                   describe(known), disk_flag(known.is_compressed)));
  }

  /// Returns true if the report will judge step times.
  bool compares_times(const Trace& trace) const {
    return !program_.is_script() || trace.environment.times_are_modelled;
  }

  /// Completes the request for the script, whose arguments are those of the trace if none are given.
  void make_script_request(const Context& context, const Trace& trace) {
    if (rounds_)
      throw input_error("--rounds is for TorchScript modules: a script runs once for each setting",
                        "Omit it.");
    if (trace.settings.loss != kOfScript)
      throw input_error(trace_path_ + " was not recorded from a training script",
                        "Record one with: " + recording());
    script_ = program_.request();
    if (script_.arguments.empty()) script_.arguments = trace.settings.inputs;
    identify_program(script_);
    script_.tool_version = program_version();
    script_.argv = context.argv();
    notes_.emplace_back(
        "Gradients: not compared, since a script cannot repeat a step; offprof.record compares them.");
  }

  ComparisonResult run_script(Context& context, const Trace& trace, const Comparison& comparison) {
    request_.device = device_.open_in_script(request_.settings.link_cap, script_.virtual_gpu);
    program_.set_assumptions(script_.virtual_gpu);
    refuse_other_device(trace);
    script_.run = request_;
    return run_script_settings(context, script_, program_.python(), comparison.policies, trace);
  }

  ComparisonResult run_engine(Context& context, const Trace& trace, const Comparison& comparison) {
    StatusLine status = context.status_line();
    status.show("loading LibTorch");
    request_.device = device_.open(context, request_.settings.link_cap);
    refuse_other_device(trace);
    ComparisonResult result = load_engine().compare(request_, comparison, [&](const std::string& what) {
      status.show(what);
      context.detail(what);
    });
    result.trace.environment.kernel_times = device_.kernel_times();
    return result;
  }

  void refuse_other_device(const Trace& trace) const {
    if (kind_of(request_.device) == kind_of(trace.environment.device)) return;
    throw input_error(
        fmt::format("--device {}: {} was recorded on {}, and its times do not apply to another device",
                    request_.device, trace_path_, trace.environment.device),
        "Omit --device, or record a trace on that device: " + recording() + " --device " + request_.device);
  }

  void refuse_other_model(const Trace& trace) const {
    const bool is_script = program_.is_script();
    if ((is_script ? script_.fingerprint : fingerprint_of_file(request_.model_path)) ==
        trace.model.fingerprint)
      return;
    throw input_error(
        fmt::format("{} is not the {} of {} ({})", request_.model_path,
                    is_script ? "script, with the arguments," : "model", trace_path_, trace.model.name),
        "Record a trace of it: " + recording());
  }

  /// Returns the command that records a trace of the program.
  std::string recording() const {
    std::vector<std::string> words = program_.words();
    words.insert(words.begin(), "run");
    words.insert(words.end(), {"-o", "trace.json"});
    return command_line(words);
  }

  /// Returns the trace's link, slowed down to --link as in the runs.
  Link link_between(const Trace& trace) const {
    const Link measured = link_to_assume(std::nullopt, trace.environment.link);
    return link_ ? slower_of(measured, *link_) : measured;
  }

  ScriptOptions program_;
  RunRequest request_;
  ScriptRequest script_;
  std::string trace_path_;
  std::optional<std::int64_t> policies_;
  std::optional<std::int64_t> rounds_;
  ValidationBounds bounds_;
  DeviceOptions device_;
  DiskOptions disk_;
  std::optional<Link> link_;
  bool force_ = false;
  std::vector<std::string> lost_records_;
  std::vector<std::string> notes_;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_validate_command() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace offprof
