#include "cli/commands/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/base/version.h"
#include "cli/options/device_options.h"
#include "cli/options/disk_options.h"
#include "cli/options/model_options.h"
#include "cli/options/options.h"
#include "cli/options/rank_options.h"
#include "cli/options/script_options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/plugin/rank_queue.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/plugin/script_runner.h"
#include "cli/reports/memory_refusal.h"
#include "cli/reports/rank_runs_report.h"
#include "cli/reports/run_report.h"
#include "cli/tables/step_size.h"
#include "engine/devices/virtual_gpu/values/peer_audit.h"
#include "engine/models/inputs/input_spec.h"
#include "engine/scheduler/command_log.h"
#include "profiler/plugin/plugin.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/time_doubt.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"
#include "traces/io/output_lock.h"

namespace offprof {
namespace {

/// Most patterns of one --checkpoint.
constexpr int kMostPatterns = 100'000;

/// Returns the default number of threads: leaves one core for the copies, so that they run beside compute.
int default_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1);
}

/// Replaces each `@FILE` by the input specs in the file, one per line.
std::vector<std::string> expand_inputs(const std::vector<std::string>& given) {
  std::vector<std::string> specs;
  for (const std::string& text : given) {
    if (!text.starts_with('@')) {
      specs.push_back(text);
      continue;
    }
    const std::vector<std::string> in_file = split_input_specs(read_file(text.substr(1)));
    if (in_file.empty())
      throw input_error(text.substr(1) + ": the file contains no input spec",
                        "Write one input spec per line: int64[4,128]<512");
    specs.insert(specs.end(), in_file.begin(), in_file.end());
  }
  for (const std::string& spec : specs) parse_input_spec(spec);
  return specs;
}

/// Resolves `--transforms`. A virtual GPU is asked what can be recomputed unless the flag says otherwise: the
/// two steps for it take no time where nothing computes.
void resolve_transforms(RunRequest& request) {
  if (request.transforms.empty() && request.device.starts_with("virtual")) request.transforms = {"recompute"};
  if (request.transforms == std::vector<std::string>{"none"}) request.transforms.clear();
}

class RunCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    RunSettings& settings = request_.settings;
    request_.threads = default_threads();
    program_.add_to(app, "Training script (train.py) or TorchScript module (model.pt)");
    add_rank_options(app, ranks_, kScriptGroup);
    app.add_flag("--continue", continues_, "Let the script train on under the policy after the recording")
        ->group(kScriptGroup);
    app.add_option(
           "--load", settings.loaded_from,
           "Checkpoint with the values of the model's parameters and buffers, by name: .safetensors, an "
           "index or a folder of them, or a .pt of torch.save; on the host, --offload-params disk reads "
           "parameters from it in place (default: the values in the model)")
        ->type_name("FILE");
    app.add_option("--input", inputs_,
                   "Input, such as float32[8,3,96,96], int64[4,128]<512 or bool[4,1]; repeat it for each "
                   "input, or give "
                   "@FILE with one input per line (default: the inputs in the archive)")
        ->type_name("SPEC");
    add_choice_option<std::string>(
        app, "--loss", settings.loss, {{"auto", "auto"}, {"mean", "mean"}, {"sum", "sum"}},
        "Loss: auto: a scalar output, else mean; mean and sum: of the squares of the output");
    add_optimizer_option(app, settings.optimizer);
    app.add_option("--checkpoint", settings.checkpointed,
                   "Modules for activation checkpointing: patterns of module paths, such as layers.*. Their "
                   "forward is "
                   "recomputed in backward; of nested modules, the outermost one (default: none)")
        ->delimiter(',')
        ->expected(1, kMostPatterns)
        ->allow_extra_args(false)  // with them, CLI11 takes [1-8] for the list of 1-8
        ->type_name("PATTERNS");
    model_.add_slices_to(app);
    steps_ = add_count_option(app, "--steps", settings.steps, 1, kMostSteps,
                              "Measured steps, at least 1 (default 5; of a script, as many as its 15 steps "
                              "allow: 1 to 3)");
    add_count_option(app, "--warmup", settings.warmup, 1, kMostSteps,
                     "Warm-up steps, at least 1: the first one creates the optimizer's state (default 1)");
    add_seed_option(app, settings.seed);
    add_count_option(app, "--threads", request_.threads, 1, kMostThreads,
                     "Intra-op threads (default: all cores but one, which is left for the copies)");
    device_.add_to(app);
    add_capacity_option(app, "--device-memory", settings.device_memory_bytes,
                        "Device memory for the measured steps; a request beyond it fails with out of memory",
                        kLeastDeviceMemory);
    add_link_option(app, link_, "host, virtual: slow each copy direction down to this bandwidth and latency");
    model_.add_parameters_to(app);
    disk_.add_to(app);
    policy_.add_to(app, "keep");
    app.add_option(
           "--transforms", request_.transforms,
           "Also measure the cost of these transforms, so that tune and simulate can use them: all, none, or "
           "names such as quantize:uint8,bits,recompute (default: those of the policy's rules; on a virtual "
           "GPU recompute too)")
        ->delimiter(',')
        ->type_name("NAMES");
    add_choice_option<CalibrationEffort>(
        app, "--calibration", request_.calibration,
        {{"full", CalibrationEffort::kFull}, {"brief", CalibrationEffort::kBrief}},
        "How thoroughly a model's costs of offloading are measured on a real device: brief saves seconds if "
        "only memory matters, and predicted times are then less accurate (default full)");
    app.add_flag_callback(
        "--no-timeline", [this] { request_.has_timeline = false; },
        "Leave the timeline out of the trace, which has a twentieth of the size then, and the steps for it");
    add_output_options(app);
  }

  ExitStatus run(Context& context) override {
    program_.choose_program(context.argv());
    request_.model_path = program_.program();
    const PolicyFile policy = policy_.resolve();
    model_.set(request_);
    request_.policy = policy.policy;
    request_.policy_made_for = policy.trace_fingerprint;
    request_.policy_saved_fingerprint = policy.saved_fingerprint;
    if (policy.fallback) request_.fallback = policy.fallback->policy;
    request_.settings.inputs = expand_inputs(inputs_);
    request_.settings.link_cap = link_;
    complete(ranks_);
    if (!ranks_.cluster.empty() && !ranks_.world_size)
      throw input_error("--cluster needs --world-size",
                        "Give the number of ranks of the job: --world-size 8");
    if (ranks_.world_size) return run_ranks(context, policy);
    claim_files(output_, commands_path_);
    return program_.is_script() ? run_script(context, policy) : run_model(context, policy);
  }

 private:
  void add_output_options(CLI::App& app) {
    add_output_option(app, output_, "File for the trace; .gz compresses it (default: none)");
    app.add_option("--commands", commands_path_,
                   "File for the scheduler's command log of one step, one JSON object per line")
        ->type_name("FILE");
  }

  ExitStatus run_model(Context& context, const PolicyFile& policy) {
    if (continues_) program_.require_script("--continue");
    RunResult result = run_engine(context);
    context.warn(result.trace.notes);
    result.trace.tool_version = program_version();
    result.trace.argv = context.argv();
    result.trace.environment.kernel_times = device_.kernel_times();
    if (result.refusal) throw memory_refusal_error(result);
    if (!output_.empty()) write_trace(output_, result.trace);
    if (!commands_path_.empty()) context.print(format_command_log(result.commands), commands_path_);
    const bool has_replayed_commands = result.steps_with_other_commands == 0 &&
                                       replay_commands(TraceSteps(result.trace).step(result.trace.policy),
                                                       result.trace.policy) == result.commands;
    return publish(context, make_report(context, result.trace, policy, has_replayed_commands, output_));
  }

  /// Checks that the files can be written, and keeps other processes from writing the trace. May be called
  /// again for the same files.
  void claim_files(const std::string& trace_path, const std::string& commands_path) {
    if (!trace_path.empty()) check_writable(trace_path);
    if (!trace_path.empty() && trace_path != "-") output_locks_.try_emplace(trace_path, trace_path);
    if (!commands_path.empty()) check_writable(commands_path);
  }

  /// Returns where the script's own output goes: beside what this program writes for others to read.
  CommandOutput script_output(const Context& context) const {
    const bool is_read =
        context.options().format == ReportFormat::kJson || output_ == "-" || commands_path_ == "-";
    return is_read ? CommandOutput::kToStandardError : CommandOutput::kInherited;
  }

  /// Returns the request for the script, but for its files.
  ScriptRequest script_request(const Context& context) const {
    refuse_model_options();
    ScriptRequest script = program_.request();
    script.run = request_;
    script.run.device = device_.open_in_script(link_, script.virtual_gpu);
    resolve_transforms(script.run);
    program_.set_assumptions(script.virtual_gpu);
    script.run.disk = disk_.request(script.run.device, request_.policy);
    script.run.settings.inputs = script.arguments;
    script.run.settings.loss = script.run.settings.optimizer = kOfScript;
    script.continues = continues_;
    script.tool_version = program_version();
    script.argv = context.argv();
    script.kernel_times = device_.kernel_times();
    script.has_default_steps = steps_->count() == 0;
    script.progress = progress_for(context);
    return script;
  }

  ExitStatus run_script(Context& context, const PolicyFile& policy) {
    ScriptRequest script = script_request(context);
    identify_program(script);
    script.trace_path = output_;
    script.commands_path = commands_path_;
    const ScriptRun run = record_script(script, program_.python(), script_output(context));
    if (!run.is_recorded) return interrupted(context, run.signal);
    const RunReport report = make_script_report(context, run, policy, output_);
    const ExitStatus status = publish(context, report);
    return run.signal != 0 ? status_of_signal(run.signal) : status;
  }

  /// Records each rank alone, one after the other.
  ExitStatus run_ranks(Context& context, const PolicyFile& policy) {
    if (!program_.is_script())
      throw input_error("--world-size is for training scripts, and not for TorchScript modules");
    if (device_.is_auto()) device_.choose("virtual");
    ScriptRequest script = script_request(context);
    if (!script.virtual_gpu)
      throw input_error("a rank without its peers needs a virtual GPU", "Add --device virtual.");
    script.virtual_gpu->cluster = ranks_.cluster;
    for (const int rank : ranks_.ranks)
      claim_files(rank_file(ranks_, output_, rank), rank_file(ranks_, commands_path_, rank));
    const ScratchFolder scratch, figures;
    const char* const kept = std::getenv(kSaidVariable);
    const std::string said = kept != nullptr ? kept : scratch.path();
    RankQueue queue(ranks_.ranks, *ranks_.world_size, said);
    RankRunsReport ranks{.world_size = *ranks_.world_size, .nodes = ranks_.nodes};
    while (const auto rank = queue.next()) {
      const std::string collectives_path = figures.file(fmt::format("rank{}.json", *rank));
      script.rank = {*rank, *ranks_.world_size, said, collectives_path};
      script.trace_path = rank_file(ranks_, output_, *rank);
      script.commands_path = rank_file(ranks_, commands_path_, *rank);
      if (ranks_.is_automatic) claim_files(script.trace_path, script.commands_path);
      identify_program(script);
      const ScriptRun run = record_rank(script, script_output(context), queue);
      if (run.waits) {
        queue.put_back();
        continue;
      }
      if (!run.is_recorded) return interrupted(context, run.signal);
      ranks.runs.push_back({*rank, make_script_report(context, run, policy, script.trace_path),
                            read_collectives(collectives_path),
                            explain(TraceSteps(run.trace), run.trace.policy, run.trace.environment.link),
                            floor_of(run.trace)});
      if (run.signal != 0) return status_of_signal(run.signal);
    }
    std::ranges::stable_sort(ranks.runs, {}, [&](const auto& run) { return place_of(ranks_, run.rank); });
    ExitStatus status = ExitStatus::kOk;
    for (const RankRun& run : ranks.runs) {
      const std::string mismatch = mismatch_warning(run.collectives);
      if (mismatch.empty()) continue;
      context.warn(fmt::format("rank {}: {}", run.rank, mismatch));
      status = ExitStatus::kCheckFailed;
    }
    for (const std::string& message : unmatched_messages(said)) {
      context.warn(unmatched_warning(message));
      status = ExitStatus::kCheckFailed;
    }
    context.publish_beside(ranks, commands_path_);
    return status;
  }

  static RankCollectives read_collectives(const std::string& path) {
    const nlohmann::json document = parse_document(read_file(path), path);
    return parse_collectives(JsonValue(document, path));
  }

  /// Records one rank, whose number begins each note. Throws Error with the rank in its message, and those
  /// that are left in its hint.
  ScriptRun record_rank(const ScriptRequest& script, CommandOutput output, const RankQueue& queue) const {
    const std::string subject = fmt::format("rank {}: ", script.rank->rank);
    try {
      ScriptRun run =
          record_script(script, program_.python(), output, rank_environment(ranks_, script.rank->rank));
      for (std::string& note : run.trace.notes) note.insert(0, subject);
      return run;
    } catch (const Error& error) {
      const std::vector<int> left = queue.left();
      const std::string not_run =
          left.empty() ? "" : fmt::format(" Not run: rank {}.", fmt::join(left, ", "));
      throw Error(error.kind(), subject + error.what(), error.hint() + not_run);
    }
  }

  ExitStatus interrupted(Context& context, int signal) const {
    context.warn(
        fmt::format("{} was ended by a signal ({}) before everything was recorded: no trace is written",
                    program_.program(), strsignal(signal)));
    return status_of_signal(signal);
  }

  /// Returns the report of a recorded script. Throws Error if the device refused it memory.
  RunReport make_script_report(Context& context, const ScriptRun& run, const PolicyFile& policy,
                               const std::string& trace_path) const {
    context.warn(run.trace.notes);
    if (run.outcome.refusal) throw memory_refusal_error({run.trace, run.outcome.refusal, {}, 0});
    RunReport report = make_report(
        context, run.trace, policy,
        run.outcome.has_replayed_commands && run.outcome.steps_with_other_commands == 0, trace_path);
    report.script = run.outcome;
    return report;
  }

  static ShownProgress progress_for(const Context& context) {
    if (context.options().verbose) return ShownProgress::kSteps;
    return context.shows_progress() ? ShownProgress::kStages : ShownProgress::kNothing;
  }

  /// Throws Error (input) for options that only models have.
  void refuse_model_options() const {
    const RunSettings& settings = request_.settings;
    const RunSettings defaults;
    if (output_ == "-" || commands_path_ == "-")
      throw input_error("the script writes to standard output itself", "Give a file: -o trace.json.gz");
    if (!inputs_.empty() || settings.loss != defaults.loss || settings.optimizer != defaults.optimizer ||
        settings.slices || settings.parameters || request_.calibration != CalibrationEffort::kFull)
      throw input_error(
          "--input, --loss, --optimizer, --slices, --offload-params and --calibration are for TorchScript "
          "modules, and not for scripts",
          "Give the script's own arguments after --: offprof run train.py -- ARGS");
  }

  ExitStatus publish(Context& context, const RunReport& report) const {
    context.publish_beside(report, output_ == "-" ? output_ : commands_path_);
    return report.hazards.empty() ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

  RunResult run_engine(Context& context) {
    StatusLine status = context.status_line();
    status.show("loading LibTorch");
    request_.device = device_.open(context, link_);
    resolve_transforms(request_);
    choose_disk();
    EnginePlugin& engine = load_engine();
    fall_back_to_host(context, engine);
    return engine.run(request_, [&](const std::string& what) {
      status.show(what);
      context.detail(what);
    });
  }

  /// Switches to the host if the driver finds a GPU but LibTorch cannot use it.
  void fall_back_to_host(Context& context, EnginePlugin& engine) {
    if (!device_.is_auto() || request_.device == "host") return;
    const std::string problem = engine.problem_with(request_.device);
    if (problem.empty()) return;
    context.warn("the GPU cannot be used, so the run uses the host: " + problem);
    request_.device = "host";
    choose_disk();
  }

  void choose_disk() {
    request_.disk = disk_.request(request_.device, request_.policy);
    share_disk_with_parameters(request_);
  }

  RunReport make_report(Context& context, const Trace& trace, const PolicyFile& policy,
                        bool has_replayed_commands, const std::string& trace_path) const {
    RunReport report;
    report.run = figures_of(trace, trace_path);
    report.gradients = trace.gradients;
    report.gradient_errors = trace.gradient_errors;
    report.notes = trace.notes;
    report.step_size = step_size(trace);
    report.ledger = trace.ledger;
    report.trace_path = trace_path;
    report.argv = context.argv();
    report.checked_streams = device_.checks_streams();
    report.hazards = device_.take_hazards();
    const TraceSteps steps(trace, memory_of_run(trace));
    TimeDoubt doubt = doubt_times(trace, steps, trace.policy, trace.environment.link);
    if (trace.environment.times_are_modelled) report.step_range = doubt.step;
    report.warnings = std::move(doubt.warnings);
    if (const std::string inexactness = steps.inexactness(trace.policy); !inexactness.empty())
      report.warnings.push_back(inexactness);
    context.warn(report.warnings);
    report.predicted = steps.predict(trace.policy, trace.environment.link);
    if (trace.policy.threshold_bytes || !trace.policy.rules.empty())
      report.without_offloading = steps.predict(preset_policy("keep"), trace.environment.link);
    if (policy.predicted && policy.parameters == trace.settings.parameters &&
        policy.trace_fingerprint == fingerprint_of_run(trace.model, trace.settings)) {
      report.predicted = *policy.predicted;
      report.predicted_by_tune = true;
    } else if (policy.predicted && policy.saved_fingerprint != fingerprint_of_saved(trace.program.saved)) {
      context.warn(
          "the policy was tuned for another model, inputs, loss, optimizer, checkpointed modules, slices or "
          "parameter offload, so tune's prediction is not shown");
    }
    report.inexact = inexact_keys(trace.metrics, report.predicted);
    if (!has_replayed_commands) report.inexact.emplace_back("commands");
    return report;
  }

  RunRequest request_;
  ScriptOptions program_;
  bool continues_ = false;
  const CLI::Option* steps_ = nullptr;
  RankOptions ranks_;
  std::vector<std::string> inputs_;
  DeviceOptions device_;
  DiskOptions disk_;
  std::optional<Link> link_;
  PolicyOptions policy_;
  ModelOptions model_;
  std::string output_;
  std::map<std::string, OutputLock> output_locks_;  ///< by file; a rank that begins anew has one already
  std::string commands_path_;
};

}  // namespace

std::unique_ptr<Subcommand> make_run_command() {
  return std::make_unique<RunCommand>();
}

}  // namespace offprof
