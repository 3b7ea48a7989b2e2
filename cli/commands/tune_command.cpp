#include "cli/commands/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cli/options/disk_options.h"
#include "cli/options/options.h"
#include "cli/reports/lost_records.h"
#include "cli/reports/next_command.h"
#include "cli/reports/simulation_report.h"
#include "cli/reports/tune_report.h"
#include "cli/reports/tuned_configuration.h"
#include "cli/tables/step_size.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "simulator/steps/modelled_time.h"
#include "simulator/steps/time_doubt.h"
#include "simulator/tuner/tune.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Largest slowdown that can be given; a larger one would be no limit.
constexpr double kMostSlowdown = 100;

class TuneCommand : public Subcommand {
 public:
  TuneCommand() { goal_.searches_plans = true; }

  void add_options(CLI::App& app) override {
    traces_.add_several_to(
        app,
        "Trace of a run; several traces if the model ran in several configurations (--checkpoint, "
        "--slices, --offload-params): each is tuned, and the best is chosen");
    add_goal_options(app);
    add_capacity_option(app, "--host-memory", goal_.host_memory_bytes,
                        "Limit of host memory for offloaded tensors");
    add_disk_bandwidth_option(
        app, disk_,
        "Disk to assume, so that placements on it are searched (default: the disk that the run "
        "measured, if any)");
    add_capacity_option(app, "--disk-memory", goal_.disk_memory_bytes,
                        "Limit of disk space for offloaded tensors");
    app.add_flag_callback(
        "--no-plan", [this] { goal_.searches_plans = false; },
        "Search only thresholds, stashes and prefetch windows, which other engines have too, and no plans "
        "(sets of tensors)");
    app.add_flag("--lossy", goal_.allows_loss,
                 "Allow lossy placements: gradients are then close to the exact ones");
    add_assumed_link_option(
        app, link_,
        "Link to assume in each direction; shared: both directions share its bandwidth (default: the link "
        "that the run measured)");
    app.add_option("--profile", profile_,
                   fmt::format("Assume the memory and link of another GPU, with the trace's compute times: "
                               "{}, or a JSON file",
                               fmt::join(profile_names(), ", ")))
        ->type_name("PROFILE");
    add_force_option(app, force_);
    add_output_option(app, output_, "File for the chosen policy (default: none)");
  }

  ExitStatus run(Context& context) override {
    if (!output_.empty()) check_writable(output_);
    apply_profile();
    const std::vector<std::string>& paths = traces_.paths();
    const std::vector<Trace> traces = read_traces(paths);
    std::vector<Tuned> tuned;
    std::optional<Nanoseconds> base;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      tuned.push_back(tune_trace(context, paths[i], traces[i], base));
      if (!base) base = time_of(tuned.front().report.result.keep);
    }
    Tuned& best = choose(tuned);
    if (best.configuration.chosen && !output_.empty()) context.print(best.policy, output_);
    context.publish_beside(best.report, output_);
    return best.configuration.chosen ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

 private:
  void add_goal_options(CLI::App& app) {
    CLI::Option* budget = add_capacity_option(app, "--memory-budget", goal_.memory_budget_bytes,
                                              "Find the fastest policy within this much device memory: peak "
                                              "allocated, or with a caching allocator peak reserved");
    CLI::Option* memory = add_capacity_option(
        app, "--device-memory", device_memory_,
        "Assume that steps can take this much device memory: a budget, within which a caching "
        "allocator frees memory that it does not need",
        kLeastDeviceMemory);
    memory->excludes(budget);
    add_parsed_option(
        app, "--max-slowdown", "PERCENT",
        [this](const std::string& text) {
          max_slowdown_ = parse_percentage(text, "slowdown", kMostSlowdown);
        },
        "Find the least memory within this slowdown, relative to offloading nothing (default 5%, if the step "
        "then fits into the trace's device; otherwise the goal is the fastest policy that fits)")
        ->excludes(budget)
        ->excludes(memory);
  }

  static std::vector<Trace> read_traces(const std::vector<std::string>& paths) {
    std::vector<Trace> traces;
    for (const std::string& path : paths) {
      traces.push_back(read_trace(path));
      refuse_other_step(traces.front(), paths.front(), traces.back(), path);
    }
    return traces;
  }

  /// Applies the profile. Values on the command line take precedence over it.
  void apply_profile() {
    if (device_memory_) goal_.memory_budget_bytes = device_memory_;
    if (max_slowdown_) goal_.max_slowdown = *max_slowdown_;
    if (profile_.empty()) return;
    const DeviceProfile profile = load_profile(profile_);
    profile_memory_ = profile.memory_bytes;
    budget_is_the_profiles_ = !goal_.memory_budget_bytes && !max_slowdown_;
    if (budget_is_the_profiles_) goal_.memory_budget_bytes = profile.memory_bytes;
    if (!link_) link_ = profile.link;
    profile_name_ = profile.device_name;
  }

  /// Returns the memory of the assumed device; a budget is not one, since a step under a budget runs on the
  /// real device.
  std::optional<MemoryCapacity> assumed_memory(const Trace& trace) const {
    if (profile_memory_) {
      const Bytes usable = device_memory_.value_or(usable_of_profile(trace));
      return MemoryCapacity{usable, std::max(usable, *profile_memory_)};
    }
    if (device_memory_) return usable_of_device(trace, *device_memory_);
    return std::nullopt;
  }

  /// Returns the profile's memory less the memory that CUDA and libraries take outside the allocator. Assumes
  /// that they take as much as on the trace's GPU, where that was measured.
  Bytes usable_of_profile(const Trace& trace) const {
    const auto& beside = trace.environment.beside_allocator;
    return std::max<Bytes>(*profile_memory_ - (beside ? beside->most_bytes() : 0), 0);
  }

  /// Result of tuning for one trace.
  struct Tuned {
    TuneReport report;
    std::string policy;  ///< text of the policy file; empty: no policy reaches the goal
    TunedConfiguration configuration;
  };

  /// Returns true if the command line sets a limit for memory or time.
  bool has_goal() const { return goal_.memory_budget_bytes || max_slowdown_; }

  /// Returns true if a step with nothing offloaded runs within the device's memory, as far as that is known.
  static bool keep_fits(const TraceSteps& steps) {
    const auto memory = steps.device_memory_bytes();
    return !memory || steps.fits(preset_policy("keep"), *memory);
  }

  TuneGoal goal_for(const Trace& trace, const TraceSteps& steps) const {
    TuneGoal goal = goal_;
    goal.device_memory_bytes = steps.device_memory_bytes();
    if (budget_is_the_profiles_) goal.memory_budget_bytes = usable_of_profile(trace);
    if (budget_is_the_devices_) goal.memory_budget_bytes = goal.device_memory_bytes;
    return goal;
  }

  static Nanoseconds time_of(const Candidate& candidate) { return *candidate.predicted.step_time_ns; }

  /// `base`: the step time to which the slowdown limit refers; nullopt: this trace's step time with nothing
  /// offloaded.
  Tuned tune_trace(Context& context, const std::string& path, const Trace& trace,
                   std::optional<Nanoseconds> base) {
    const std::vector<std::string> lost_records = refuse_lost_records(trace, path, force_);
    if (trace.simulated)
      context.note(path +
                   " is simulated: its compute times are those of the run from which it was simulated");
    const TraceSteps steps(trace, assumed_memory(trace));
    Link link = link_to_assume(link_, trace.environment.link);
    link.disk = disk_to_assume(disk_, trace, {});
    if (!base) budget_is_the_devices_ = !has_goal() && !keep_fits(steps);
    TuneGoal goal = goal_for(trace, steps);
    std::optional<double> longest;
    if (base && !goal.memory_budget_bytes) {
      longest = (1 + goal_.max_slowdown) * static_cast<double>(*base);
      const auto keep = static_cast<double>(*steps.predict(preset_policy("keep"), link).step_time_ns);
      goal.max_slowdown = std::max(0.0, *longest / keep - 1);
    }
    Tuned tuned = {search(context, path, trace, steps, link, goal), {}, {path, trace.settings, {}, {}}};
    tuned.report.warnings.insert(tuned.report.warnings.begin(), lost_records.begin(), lost_records.end());
    tuned.configuration.keep = tuned.report.result.keep;
    const auto& chosen = tuned.report.result.chosen;
    if (!chosen || (longest && static_cast<double>(time_of(*chosen)) > *longest)) return tuned;
    tuned.configuration.chosen = chosen;
    tuned.policy = policy_text(tuned.report.result, trace);
    tuned.report.next = next_command(context, trace, chosen->policy, link.disk);
    if (writes_policy()) tuned.report.next_variables = variables_of_run(trace);
    return tuned;
  }

  bool writes_policy() const { return !output_.empty() && output_ != "-"; }

  /// Returns the command that runs the policy if it was written to a file; else the command that writes it to
  /// one.
  std::vector<std::string> next_command(const Context& context, const Trace& trace, const Policy& policy,
                                        const DiskLink& disk) const {
    if (!writes_policy()) return with_output(context.argv(), "policy.json");
    std::vector<std::string> words = run_with_policy(trace, output_);
    add_disk_words(words, trace, policy, disk);
    return words;
  }

  /// Chooses the best trace for the goal, or the one that comes closest if none reaches the goal. Adds the
  /// configurations of all traces to its report.
  Tuned& choose(std::vector<Tuned>& tuned) const {
    Tuned& best = *std::ranges::min_element(tuned, {}, [&](const Tuned& one) { return rank_of(one); });
    best.configuration.is_best = best.configuration.chosen.has_value();
    for (const Tuned& one : tuned) best.report.configurations.push_back(one.configuration);
    return best;
  }

  /// Returns a rank; the smallest is the best.
  std::tuple<bool, std::int64_t, std::int64_t> rank_of(const Tuned& tuned) const {
    if (!tuned.configuration.chosen)
      return {true, device_bytes_taken(least_memory(tuned.report.result).predicted), 0};
    const Bytes taken = device_bytes_taken(tuned.configuration.chosen->predicted);
    const Nanoseconds time = time_of(*tuned.configuration.chosen);
    const bool has_budget = tuned.report.goal.memory_budget_bytes.has_value();
    return has_budget ? std::tuple(false, time, taken) : std::tuple(false, taken, time);
  }

  TuneReport search(Context& context, const std::string& path, const Trace& trace, const TraceSteps& steps,
                    const Link& link, const TuneGoal& goal) const {
    StatusLine status = context.status_line();
    const auto progress = [&](const std::string& what) {
      status.show(path + ": " + what);
      context.detail(what);
    };
    TuneReport report;
    report.trace = path;
    report.goal = goal;
    report.goal.max_slowdown = goal_.max_slowdown;
    report.budget_is_the_devices = budget_is_the_devices_;
    report.result = tune(steps, link, goal, progress);
    const Policy keep = preset_policy("keep");
    report.least_place =
        place_of_event(steps.program(keep), steps.step(keep), report.result.least_peak_event);
    if (report.result.chosen) report.why = explain(steps, report.result.chosen->policy, link);
    report.profile = profile_name_;
    report.times_are_modelled = trace.environment.times_are_modelled;
    report.settings = trace.settings;
    report.knows_recomputations = trace.program.recomputations.has_value();
    report.step_size = step_size(trace);
    add_ranges(report, trace, steps, link);
    std::ranges::move(doubt_times(trace, steps, preset_policy("offload"), link).warnings,
                      std::back_inserter(report.warnings));
    if (const std::string inexactness = steps.inexactness(preset_policy("keep")); !inexactness.empty())
      report.warnings.push_back(inexactness);
    const std::string of_trl = steps.inexactness(report.result.trl.policy);
    if (!of_trl.empty() && std::ranges::find(report.warnings, of_trl) == report.warnings.end())
      report.warnings.push_back("the preset trl, which others are compared with: " + of_trl);
    return report;
  }

  /// Adds the range of the chosen policy's modelled time, and the policies that may be as fast.
  static void add_ranges(TuneReport& report, const Trace& trace, const TraceSteps& steps, const Link& link) {
    const TuneResult& result = report.result;
    if (!result.chosen) return;
    const auto chosen = modelled_time(trace, steps, result.chosen->policy, link);
    if (!chosen) return;
    report.step_range = range_of(*chosen);
    for (const std::size_t row : rows_to_show(result)) {
      const Policy& policy = result.frontier[row].policy;
      if (policy == result.chosen->policy) continue;
      const auto time = modelled_time(trace, steps, policy, link);
      if (time && are_alike(*chosen, *time)) report.alike.push_back(row);
    }
  }

  static std::string policy_text(const TuneResult& result, const Trace& trace) {
    PolicyFile file = policy_file_for(trace, result.chosen->policy, result.chosen->predicted);
    if (result.fallback) file.fallback = {result.fallback->policy, result.fallback->predicted};
    return format_policy_file(file);
  }

  TraceArgument traces_;
  TuneGoal goal_;
  std::optional<Bytes> device_memory_, profile_memory_;
  bool budget_is_the_profiles_ = false;
  bool budget_is_the_devices_ = false;  ///< no goal was given, and the first trace's step does not fit
  std::optional<double> max_slowdown_;
  std::optional<Link> link_;
  std::optional<DiskLink> disk_;
  std::string profile_, profile_name_;
  bool force_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_tune_command() {
  return std::make_unique<TuneCommand>();
}

}  // namespace offprof
