#include "cli/tune_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "cli/disk_options.h"
#include "cli/lost_records.h"
#include "cli/options.h"
#include "cli/simulation_report.h"
#include "cli/tune_report.h"
#include "simulator/time_doubt.h"
#include "simulator/tune.h"
#include "simulator/virtual_gpu/profile.h"
#include "traces/error.h"
#include "traces/file.h"
#include "traces/fingerprint.h"
#include "traces/policy_io.h"
#include "traces/trace_io.h"

namespace offprof {
namespace {

/// More than this is no limit.
constexpr double kMostSlowdown = 100;

class TuneCommand : public Subcommand {
 public:
  TuneCommand() { goal_.searches_plans = true; }

  void add_options(CLI::App& app) override {
    add_trace_option(app, trace_path_, "The trace of a run");
    add_goal_options(app);
    add_bytes_option(app, "--host-memory", goal_.host_memory_bytes,
                     "Cap of host memory for offloaded tensors");
    add_disk_bandwidth_option(
        app, disk_,
        "The disk to assume, so that placements on it are searched (default: as the run "
        "measured it, if it did)");
    add_bytes_option(app, "--disk-memory", goal_.disk_memory_bytes, "Cap of the disk for offloaded tensors");
    app.add_flag_callback(
        "--no-plan", [this] { goal_.searches_plans = false; },
        "Thresholds, stashes and windows only, which other engines have too; no sets of tensors");
    app.add_flag("--lossy", goal_.allows_loss,
                 "Let placements lose something of what they pack: gradients are near the exact ones then");
    add_link_option(app, link_, "The link to assume, in each direction (default: as the run measured it)");
    app.add_option("--profile", profile_,
                   fmt::format("What if: the memory and link of another GPU, with the trace's compute times: "
                               "{}, or a JSON file",
                               fmt::join(profile_names(), ", ")))
        ->type_name("PROFILE");
    add_force_option(app, force_);
    add_output_option(app, output_, "The chosen policy (default: none)");
  }

  ExitStatus run(Context& context) override {
    const Trace trace = read_trace(trace_path_);
    lost_records_ = refuse_lost_records(trace, trace_path_, force_);
    if (trace.simulated)
      context.note(
          "the trace is simulated: its compute times are those of the run that it was simulated from");
    if (!output_.empty()) check_writable(output_);
    apply_profile();
    const TraceSteps steps(trace, assumed_memory(trace));
    Link link = link_to_assume(link_, trace.environment.link);
    link.disk = disk_to_assume(disk_, trace, {});
    const TuneReport report = search(trace, steps, link);
    if (report.result.chosen && !output_.empty())
      context.print(policy_text(*report.result.chosen, trace), output_);
    context.publish_beside(report, output_);
    return report.result.chosen ? ExitStatus::kOk : ExitStatus::kGateFailed;
  }

 private:
  void add_goal_options(CLI::App& app) {
    CLI::Option* budget = add_bytes_option(app, "--memory-budget", goal_.memory_budget_bytes,
                                           "Find the fastest policy that takes no more of the device: its "
                                           "peak, or with a caching allocator what that reserves");
    CLI::Option* memory =
        add_bytes_option(app, "--device-memory", device_memory_,
                         "What if steps could take that much of the device: a budget, within which a caching "
                         "allocator gives back what it does not need",
                         kLeastDeviceMemory);
    memory->excludes(budget);
    add_parsed_option(
        app, "--max-slowdown", "PERCENT",
        [this](const std::string& text) {
          max_slowdown_ = parse_percentage(text, "slowdown", kMostSlowdown);
        },
        "Find the least memory within that slowdown over keeping everything (default 5%)")
        ->excludes(budget)
        ->excludes(memory);
  }

  /// What is given on the command line goes before what the profile says.
  void apply_profile() {
    if (device_memory_) goal_.memory_budget_bytes = device_memory_;
    if (max_slowdown_) goal_.max_slowdown = *max_slowdown_;
    if (profile_.empty()) return;
    const DeviceProfile profile = load_profile(profile_);
    profile_memory_ = profile.memory_bytes;
    if (!goal_.memory_budget_bytes && !max_slowdown_) goal_.memory_budget_bytes = profile.memory_bytes;
    if (!link_) link_ = profile.link;
    profile_name_ = profile.device_name;
  }

  /// A budget is not one of them: steps under it run on the device as it is.
  std::optional<DeviceMemory> assumed_memory(const Trace& trace) const {
    if (profile_memory_) {
      const Bytes usable = device_memory_.value_or(*profile_memory_);
      return DeviceMemory{usable, std::max(usable, *profile_memory_)};
    }
    if (device_memory_) return usable_of_device(trace, *device_memory_);
    return std::nullopt;
  }

  TuneReport search(const Trace& trace, const TraceSteps& steps, const Link& link) const {
    TuneReport report;
    report.trace = trace_path_;
    report.goal = goal_;
    report.result = tune(steps, link, goal_);
    const Policy keep = preset_policy("keep");
    report.least_place =
        place_of_event(steps.program(keep), steps.step(keep), report.result.least_peak_event);
    if (report.result.chosen) report.why = explain(steps, report.result.chosen->policy, link);
    report.profile = profile_name_;
    report.output = output_;
    report.times_are_modelled = trace.environment.times_are_modelled;
    report.settings = trace.settings;
    report.warnings = lost_records_;
    std::ranges::move(doubt_times(trace, steps, preset_policy("offload"), link).warnings,
                      std::back_inserter(report.warnings));
    if (const std::string inexactness = steps.inexactness(report.result.trl.policy); !inexactness.empty())
      report.warnings.push_back("the preset trl, which others are compared with: " + inexactness);
    return report;
  }

  static std::string policy_text(const Candidate& chosen, const Trace& trace) {
    return format_policy_file(
        {chosen.policy, chosen.predicted, fingerprint_of_run(trace.model, trace.settings)});
  }

  std::string trace_path_;
  TuneGoal goal_;
  std::optional<Bytes> device_memory_, profile_memory_;
  std::optional<double> max_slowdown_;
  std::optional<Link> link_;
  std::optional<DiskLink> disk_;
  std::string profile_, profile_name_;
  bool force_ = false;
  std::vector<std::string> lost_records_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_tune_command() {
  return std::make_unique<TuneCommand>();
}

}  // namespace offprof
