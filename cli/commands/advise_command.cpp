#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "cli/advice/child_recorder.h"
#include "cli/advice/demanding_rank.h"
#include "cli/advice/trace_recorder.h"
#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/options/rank_options.h"
#include "cli/options/script_options.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/rank_queue.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/advice/advice_report.h"
#include "cli/reports/advice/size_report.h"
#include "cli/reports/advice/way_words.h"
#include "cli/reports/advice/world_report.h"
#include "cli/reports/next_command.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "simulator/steps/trace_steps.h"
#include "traces/analysis/compiled_graph.h"
#include "traces/base/error.h"
#include "traces/format/policy_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr double kMostAdvisedSlowdown = 100;

/// Aim of the search within the limits.
enum class Goal { kTime, kMemory, kBatch, kSequence };

class AdviseCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    program_.add_to(app, "Training script (train.py) or TorchScript module (model.pt)");
    add_run_options(app);
    add_goal_options(app);
    add_job_options(app);
    CLI::Option* traces =
        app.add_option("-t,--trace", traces_,
                       "Compare this trace of a run without recording; repeat --trace for the other "
                       "configurations of the model; the first one is the step with nothing done")
            ->type_name("FILE")
            ->expected(1)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    for (const char* name :
         {"PROGRAM", "--module", "--python", "--patience", "--shape", "--step-function", "--input", "--load",
          "--loss", "--optimizer", "--device", "--kernel-times", "--world-size"})
      traces->excludes(app.get_option(name));
    add_output_option(app, output_, "File for the policy of the recommended way (default: none)");
  }

  ExitStatus run(Context& context) override {
    if (!output_.empty()) check_writable(output_);
    request_.objective = goal_ == Goal::kMemory ? Objective::kMemory : Objective::kTime;
    if (is_of_size() && !traces_.empty())
      throw input_error("--goal batch and sequence need recordings of several sizes, not traces",
                        "Give the program in place of --trace.");
    try {
      return traces_.empty() ? advise_program(context) : advise_traces(context);
    } catch (const EndedBySignal& end) {
      return status_of_signal(end.signal);
    }
  }

 private:
  /// Adds the options that every recording is given.
  void add_run_options(CLI::App& app) {
    app.add_option("--input", inputs_, "Input of a model: see offprof run")->type_name("SPEC");
    app.add_option("--load", loaded_from_, "Checkpoint of a model: see offprof run")->type_name("FILE");
    add_choice_option<std::string>(app, "--loss", loss_, {{"auto", "auto"}, {"mean", "mean"}, {"sum", "sum"}},
                                   "Loss of a model: see offprof run (default auto)");
    add_optimizer_option(app, optimizer_);
    app.add_option("--device", device_, "Device to record and run on: see offprof run (default virtual)")
        ->type_name("DEVICE");
    app.add_option("--kernel-times", kernel_times_,
                   "virtual: kernel times from a trace that was recorded on a GPU")
        ->type_name("FILE");
  }

  void add_goal_options(CLI::App& app) {
    add_capacity_option(app, "--memory-budget", request_.memory_budget_bytes,
                        "Limit of device memory (default: the device's memory)");
    add_parsed_option(
        app, "--max-slowdown", "PERCENT",
        [this](const std::string& text) {
          request_.max_slowdown = parse_percentage(text, "slowdown", kMostAdvisedSlowdown);
        },
        "Limit of the step time, or of the time per size, relative to doing nothing (default: none)");
    add_choice_option<Goal>(
        app, "--goal", goal_,
        {{"time", Goal::kTime},
         {"memory", Goal::kMemory},
         {"batch", Goal::kBatch},
         {"sequence", Goal::kSequence}},
        "Find the least time or the least memory within the limits, or the largest batch or "
        "sequence length that fits (default time)");
    app.add_option("--size-argument", size_argument_,
                   "For --goal batch and sequence of a script: the argument that sets the size, such as "
                   "--batch-size; its present value is among ARGS")
        ->type_name("NAME")
        ->group(kScriptGroup);
  }

  void add_job_options(CLI::App& app) {
    add_parsed_option(
        app, "--world-size", "N|FROM..TO",
        [this](const std::string& text) { world_sizes_ = parse_world_sizes(text); },
        "Advise a rank of a job of N ranks, without the others; FROM..TO: find the least number of ranks "
        "that "
        "fits, of FROM, twice as many and so on")
        ->group(kScriptGroup);
    add_cluster_option(app, cluster_)->group(kScriptGroup);
    ranks_per_node_option_ = add_count_option(app, "--ranks-per-node", ranks_per_node_, 1, kMostRanks,
                                              "Ranks on a node, a device each, in jobs of more (default 8)")
                                 ->group(kScriptGroup);
  }

  bool is_of_size() const { return goal_ == Goal::kBatch || goal_ == Goal::kSequence; }

  /// Throws Error (input) for a script without --size-argument, and for a model with it.
  std::optional<StepResizer> resizer() const {
    if (program_.is_script() == size_argument_.empty() && is_of_size())
      throw program_.is_script()
          ? input_error("offprof cannot know which argument of the script sets its size",
                        "Name it, and give its present value: --size-argument --batch-size -- --batch-size 8")
          : input_error("--size-argument is for scripts: the size of a model is that of its inputs");
    if (!is_of_size() && !size_argument_.empty())
      throw input_error("--size-argument is for --goal batch and --goal sequence");
    if (!is_of_size()) return std::nullopt;
    return StepResizer(
        goal_ == Goal::kBatch ? StepResizer::Dimension::kBatch : StepResizer::Dimension::kSequence,
        size_argument_);
  }

  ExitStatus advise_program(Context& context) {
    program_.choose_program(context.argv());
    program_.request();  // refuses a choice of steps that does not exist before anything is recorded
    if (!world_sizes_.empty()) return advise_job(context);
    if (!cluster_.empty() || ranks_per_node_option_->count() > 0)
      throw input_error("--cluster and --ranks-per-node need --world-size",
                        "Give the number of ranks of the job: --world-size 8");
    const std::vector<std::string> words = run_words();
    StatusLine status = context.status_line();
    const auto progress = progress_for(context, status);
    ChildRecorder recorder(words, program_.is_script(), is_virtual(device_), resizer(), progress);
    if (is_of_size()) return advise_largest(context, recorder, status);
    Advice advice = advise(recorder, request_, progress);
    status.wipe();
    AdviceReport report{std::move(advice), *recorder.plain_trace()};
    report.notes = notes_on(recorder);
    report.peak_flops = peak_flops(device_);
    instruct_run(report.instructions, words, report.advice.recommended());
    return finish(context, std::move(report));
  }

  /// Finds the smallest of the world sizes that fits, and advises its most demanding rank.
  ExitStatus advise_job(Context& context) {
    refuse_other_than_jobs();
    StatusLine status = context.status_line();
    constexpr std::string_view kRecording = "recording representative ranks";
    const auto progress = progress_for(context, status, kRecording);
    std::map<int, JobRank> ranks;
    const WorldAdvice advice = advise_world_size(world_sizes_, [&](int world_size) {
      progress(fmt::format("{} of {}", kRecording, world_size));
      const std::vector<std::string> words = with_options(run_words(), job_words(world_size));
      auto said = std::make_unique<ScratchFolder>();
      RecordedRank demanding = find_demanding_rank(words, said->path());
      const int rank = demanding.rank;
      auto recorder =
          std::make_unique<ChildRecorder>(with_options(words, {"--rank", std::to_string(rank)}), true, true,
                                          std::nullopt, progress, Variables{{kSaidVariable, said->path()}});
      recorder->take_plain(std::move(demanding.trace));
      Advice found = advise(*recorder, request_, progress);
      const std::string needed = fmt::format("{}", fmt::join(ranks_heard_by(rank, said->path()), ","));
      ranks[world_size] = {std::move(said), std::move(recorder), with_options(words, {"--rank", needed})};
      return RankAdvice{rank, std::move(found)};
    });
    status.wipe();
    const JobRank& best = ranks.at(advice.best_attempt().world_size);
    WorldReport report{advice, {advice.best_attempt().found->advice, *best.recorder->plain_trace()}};
    report.best.notes = notes_on(*best.recorder);
    report.best.peak_flops = peak_flops(device_);
    const Way& way = report.best.advice.recommended();
    instruct_run(report.best.instructions, best.words, way);
    report.best.instructions.is_job = true;
    write_policy(context, way, report.best.instructions);
    context.publish_beside(report, output_);
    return way.is_within ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

  void refuse_other_than_jobs() const {
    if (!program_.is_script())
      throw input_error("--world-size is for training scripts, and not for TorchScript modules");
    if (!is_virtual(device_))
      throw input_error("a rank without its peers needs a virtual GPU", "Add --device virtual.");
    if (is_of_size()) throw input_error("--world-size is for --goal time and --goal memory");
    for (const int ranks : world_sizes_)
      if (ranks > ranks_per_node_ && ranks % ranks_per_node_ != 0)
        throw input_error(fmt::format("{} ranks do not fill nodes of {}", ranks, ranks_per_node_),
                          "Give --ranks-per-node a number that divides them.");
  }

  /// Returns the options of `run` for a job of that size.
  std::vector<std::string> job_words(int world_size) const {
    const int nodes = std::max(1, world_size / ranks_per_node_);
    std::vector<std::string> words = {"--world-size", std::to_string(world_size)};
    if (nodes > 1) words.insert(words.end(), {"--nodes", std::to_string(nodes)});
    if (!cluster_.empty()) words.insert(words.end(), {"--cluster", cluster_});
    return words;
  }

  ExitStatus advise_largest(Context& context, ChildRecorder& recorder, StatusLine& status) {
    SizeAdvice advice = advise_size(recorder, request_, progress_for(context, status, kSearchingSize));
    status.wipe();
    SizeReport report{std::move(advice), *recorder.plain_trace(),
                      goal_ == Goal::kBatch ? "batch" : "sequence length", goal_ == Goal::kBatch};
    report.notes = notes_on(recorder);
    if (goal_ == Goal::kBatch && !program_.is_script())
      report.notes.emplace_back(
          "a batch of any size can be trained in N parts that fit, which add up their gradients: "
          "offprof run --slices 1 --microbatches N");
    if (report.advice.ways.empty() || report.advice.ways.front().size == 0) {
      context.publish_beside(report, "");
      return ExitStatus::kCheckFailed;
    }
    const Way& way = report.advice.ways.front().way;
    instruct_run(report.instructions, recorder.program_of(way.configuration), way);
    write_policy(context, way, report.instructions);
    context.publish_beside(report, output_);
    return ExitStatus::kOk;
  }

  std::vector<std::string> notes_on(const ChildRecorder& recorder) const {
    std::vector<std::string> notes = recorder.plain_trace()->notes;
    for (const std::string& note : recorder.confirmed_notes())
      if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    if (std::string inexactness = TraceSteps(*recorder.plain_trace()).inexactness(preset_policy("keep"));
        !inexactness.empty())
      notes.push_back(std::move(inexactness));
    note_compiled_graph(*recorder.plain_trace(), notes);
    if (const std::string& failure = recorder.confirmation_failure(); !failure.empty())
      notes.push_back("a run that was to confirm a way failed: " + failure);
    if (program_.is_script())
      notes.emplace_back(
          "layer slices and parameter offload change the program, so that they are compared for TorchScript "
          "modules only");
    return notes;
  }

  /// Adds why offloading hardly lowers the peak of a program that is compiled as one graph, and what does.
  static void note_compiled_graph(const Trace& plain, std::vector<std::string>& notes) {
    constexpr double kMuch = 0.5;
    const double share = share_of_compiled_graph(plain.program);
    if (share <= kMuch) return;
    notes.push_back(fmt::format(
        "torch.compile made one graph that takes back {:.0f}% of the saved tensors at once, when its "
        "backward begins: offloading lowers the peak little, and modules within it cannot be checkpointed. "
        "Let the compiler save less and compute the rest again: import torch._functorch.config, set "
        "torch._functorch.config.activation_memory_budget = 0.5 before the model is compiled (1 saves all, "
        "0 the least), and run advise again",
        100 * share));
  }

  ExitStatus advise_traces(Context& context) {
    TraceRecorder recorder(traces_);
    StatusLine status = context.status_line();
    Advice advice = advise(recorder, request_, progress_for(context, status));
    status.wipe();
    AdviceReport report{std::move(advice), recorder.plain_trace()};
    report.is_of_traces = true;
    report.notes.emplace_back(
        "configurations other than those of the traces were not tried; with a program in place of traces, "
        "advise records them");
    note_compiled_graph(report.plain, report.notes);
    report.peak_flops = peak_flops(report.plain.environment.device);
    const Way& way = report.advice.recommended();
    const Trace& trace = recorder.trace_of(way.configuration);
    report.instructions.run =
        run_with_policy(trace, way.policy == preset_policy("keep") ? "keep" : policy_path());
    report.instructions.variables = variables_of_run(trace);
    report.instructions.is_script = report.plain.settings.optimizer == kOfScript;
    return finish(context, std::move(report));
  }

  /// Writes the policy and prints the report.
  ExitStatus finish(Context& context, AdviceReport report) const {
    const Way& way = report.advice.recommended();
    report.instructions.first_steps_exceed = first_steps_exceed(report.advice, way, report.plain.environment);
    write_policy(context, way, report.instructions);
    context.publish_beside(report, output_);
    return way.is_within ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

  /// Sets the run of a way that was recorded. `program`: see words_of_way.
  void instruct_run(WayInstructions& instructions, const std::vector<std::string>& program,
                    const Way& way) const {
    instructions.run = words_of_way(program, way, policy_path());
    instructions.variables = ChildRecorder::variables_of(way.configuration);
  }

  /// Writes the policy of the way, and completes the instructions for it.
  void write_policy(Context& context, const Way& way, WayInstructions& instructions) const {
    instructions.is_script |= program_.is_script();
    if (program_.program().ends_with(".py")) instructions.source = read_file(program_.program());
    const bool is_preset = way.policy == preset_policy("keep");
    instructions.policy = is_preset ? "keep" : policy_path();
    if (!output_.empty()) context.print(format_policy_file(policy_file_of(way)), output_);
    if ((output_.empty() || output_ == "-") && !is_preset)
      instructions.policy_command = with_output(context.argv(), policy_path());
  }

  /// Stages that begin with `long_stage` take a while each, so that a log shows them as well.
  static std::function<void(const std::string&)> progress_for(Context& context, StatusLine& status,
                                                              std::string_view long_stage = {}) {
    return [&context, &status, long_stage](const std::string& what) {
      status.show(what);
      const bool is_long = !long_stage.empty() && what.starts_with(long_stage);
      is_long && !context.shows_progress() ? context.note(what) : context.detail(what);
    };
  }

  /// Returns the path of the policy in the commands to run next.
  std::string policy_path() const { return output_.empty() || output_ == "-" ? "policy.json" : output_; }

  std::vector<std::string> run_words() const {
    std::vector<std::string> words = {"run"};
    const auto add_all = [&](const std::vector<std::string>& more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    const auto add = [&](const char* flag, const std::string& value) {
      if (!value.empty()) add_all({flag, value});
    };
    add_all(program_.words());
    add_all(program_.option_words());
    add("--device", device_);
    add("--kernel-times", kernel_times_);
    for (const std::string& input : inputs_) add("--input", input);
    add("--load", loaded_from_);
    add("--loss", loss_);
    add("--optimizer", optimizer_);
    if (!program_.arguments().empty()) {
      words.emplace_back("--");
      add_all(program_.arguments());
    }
    return words;
  }

  static bool is_virtual(const std::string& device) { return device.starts_with("virtual"); }

  /// Returns the peak rate of the virtual GPU for bfloat16, in operations per second; 0: not known, as that
  /// of a trace's GPU whose profile is not at hand.
  double peak_flops(const std::string& device) const {
    if (!is_virtual(device)) return 0;
    const std::size_t colon = device.find(':');
    const std::string name = colon == std::string::npos ? kDefaultProfile : device.substr(colon + 1);
    const std::vector<std::string> known = profile_names();
    if (!traces_.empty() && std::ranges::find(known, name) == known.end()) return 0;
    const DeviceProfile profile = load_profile(name);
    const auto found = profile.flops_per_second.find("bfloat16");
    return found == profile.flops_per_second.end() ? 0 : found->second;
  }

  /// Recorder of one rank of a job, and the words of a `run` of that rank and of those whose objects it
  /// needs.
  struct JobRank {
    std::unique_ptr<ScratchFolder> said;  ///< see kSaidVariable
    std::unique_ptr<ChildRecorder> recorder;
    std::vector<std::string> words;
  };

  ScriptOptions program_;
  AdviceRequest request_;
  std::vector<int> world_sizes_;  ///< ascending; empty: the program is no job of many ranks
  int ranks_per_node_ = 8;
  const CLI::Option* ranks_per_node_option_ = nullptr;
  std::string cluster_;  ///< of the job; empty: the usual one of the card
  Goal goal_ = Goal::kTime;
  std::vector<std::string> traces_, inputs_;
  std::string device_ = "virtual", kernel_times_, loaded_from_, loss_, optimizer_, output_, size_argument_;
};

}  // namespace

std::unique_ptr<Subcommand> make_advise_command() {
  return std::make_unique<AdviseCommand>();
}

}  // namespace offprof
