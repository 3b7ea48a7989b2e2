#include "cli/validate_command.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/device_options.h"
#include "cli/engine_loader.h"
#include "cli/options.h"
#include "cli/run_report.h"
#include "cli/validate_report.h"
#include "engine/plugin.h"
#include "simulator/policy_sample.h"
#include "simulator/replay.h"
#include "simulator/trace_steps.h"
#include "simulator/views.h"
#include "traces/error.h"
#include "traces/fingerprint.h"
#include "traces/trace_io.h"

namespace offprof {
namespace {

constexpr std::int64_t kLeastPolicies = 3, kMostPolicies = 10'000;
constexpr std::int64_t kMostRounds = 10'000;
/// The first of a visit brings memory and caches into the policy's own state, the second is timed.
constexpr int kStepsPerVisit = 2;
/// `keep`, the first of the policies, is visited so many times more in each round: the drift goes by it.
constexpr std::size_t kMoreOfKeep = 2;

class ValidateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("MODEL.pt", request_.model_path, "The model that the trace is of")->required();
    add_trace_option(app, trace_path_, "The trace to predict from; it says inputs, device and all else");
    add_count_option(app, "--policies", policies_, kLeastPolicies, kMostPolicies,
                     "Settings to run, spread over what a policy can be (default 30)");
    add_count_option(app, "--rounds", rounds_, 1, kMostRounds,
                     "Times that each setting is run, the settings interleaved (default 7)");
    add_share_option(app, "--max-mean-error", bounds_.mean_error,
                     "Exit status 1 beyond that mean error of the step time (default 3%)");
    add_share_option(app, "--max-p95-error", bounds_.p95_error,
                     "Likewise of its 95th percentile (default 8%)");
    add_share_option(app, "--min-tau", bounds_.kendall_tau,
                     "Likewise below that Kendall's tau (default 0.95)");
    device_.add_to(app);
    add_link_option(app, link_,
                    "host, virtual: run with that link instead of the trace's, and predict for it");
    add_output_option(app, output_, "Where the report goes (default -)");
  }

  ExitStatus run(Context& context) override {
    Trace trace = read_trace(trace_path_);
    if (trace.simulated)
      throw input_error(trace_path_ + " is simulated: there is nothing measured in it to predict from",
                        "Record one with: offprof run MODEL.pt -o trace.json");
    refuse_other_model(trace);
    context.warn(doubts_about_times(trace.environment.calibration, trace.environment.times_are_modelled));
    refuse_faster_link(trace);
    make_request(trace);
    ComparisonResult result = run_engine(context, trace);
    join_visits_of_keep(result.runs);
    context.warn(result.trace.notes);
    const ValidationReport report = make_report(std::move(trace), result);
    context.publish(report, output_);
    return report.ok() ? ExitStatus::kOk : ExitStatus::kGateFailed;
  }

 private:
  /// The trace knows nothing of how fast its link would have been without the cap.
  void refuse_faster_link(const Trace& trace) const {
    const auto& cap = trace.settings.link_cap;
    if (!link_ || !cap || slower_of(*link_, *cap) == *link_) return;
    throw input_error("--link: the trace was recorded over a link that was slowed down further",
                      "Record it without --link: offprof run MODEL.pt -o trace.json");
  }

  void make_request(const Trace& trace) {
    request_.settings = trace.settings;
    request_.threads = trace.environment.threads;
    if (link_) request_.settings.link_cap = link_;
  }

  ComparisonResult run_engine(Context& context, const Trace& trace) {
    StatusLine status = context.status_line();
    status.show("opening LibTorch");
    if (device_.is_auto()) device_.choose(trace.environment.device);
    request_.device = device_.open(context, request_.settings.link_cap);
    Comparison comparison{spanning_policies(Step(trace.program), static_cast<std::size_t>(policies_)),
                          rounds_, kStepsPerVisit};
    comparison.policies.insert(comparison.policies.end(), kMoreOfKeep, comparison.policies.front());
    return load_engine().compare(request_, comparison, [&](const std::string& what) {
      status.show(what);
      context.detail(what);
    });
  }

  void refuse_other_model(const Trace& trace) const {
    if (fingerprint_of_file(request_.model_path) == trace.model.fingerprint) return;
    throw input_error(fmt::format("{} is not the model that {} is of ({})", request_.model_path, trace_path_,
                                  trace.model.name),
                      "Record a trace of it: offprof run MODEL.pt -o trace.json");
  }

  ValidationReport make_report(Trace trace, const ComparisonResult& result) const {
    trace.settings.steps = kStepsPerVisit;  // so many follow each other in a visit
    const Link link = link_between(trace);
    ValidationReport report;
    report.model = result.trace.model.name;
    report.trace = trace_path_;
    report.device = result.trace.environment.device;
    report.rounds = rounds_;
    report.bounds = bounds_;
    report.times_are_modelled = result.trace.environment.times_are_modelled;
    const TraceSteps steps(trace);
    for (const PolicyRun& run : result.runs) report.settings.push_back(setting_of(steps, link, run));
    report.drift = drift_of(report.settings.front().times);  // keep is the first
    take_drift_out(report, std::move(trace), link);
    report.accuracy = accuracy_of(times_of(report, &ValidatedSetting::times));
    report.adjusted = accuracy_of(times_of(report, &ValidatedSetting::adjusted));
    return report;
  }

  static void join_visits_of_keep(std::vector<PolicyRun>& runs) {
    for (std::size_t i = 0; i < kMoreOfKeep; ++i) {
      const std::vector<Nanoseconds>& more = runs.back().step_times_ns;
      runs.front().step_times_ns.insert(runs.front().step_times_ns.end(), more.begin(), more.end());
      runs.pop_back();
    }
  }

  /// With --link the trace's own, slowed down to it as the run is.
  Link link_between(const Trace& trace) const {
    const Link measured = link_to_assume(std::nullopt, trace.environment.link);
    return link_ ? slower_of(measured, *link_) : measured;
  }

  static double drift_of(const TimedSetting& keep) {
    return static_cast<double>(median_of(keep.measured_ns)) / static_cast<double>(keep.predicted_ns) - 1;
  }

  static void take_drift_out(ValidationReport& report, Trace trace, const Link& link) {
    scale_compute(trace.program, 1 + report.drift);
    if (trace.dense_program) scale_compute(*trace.dense_program, 1 + report.drift);
    const TraceSteps steps(trace);
    for (ValidatedSetting& setting : report.settings) {
      setting.adjusted = setting.times;
      setting.adjusted.predicted_ns =
          *replay(steps.step(setting.policy), setting.policy, link).metrics.step_time_ns;
    }
  }

  static std::vector<TimedSetting> times_of(const ValidationReport& report,
                                            TimedSetting ValidatedSetting::*member) {
    std::vector<TimedSetting> times;
    for (const ValidatedSetting& setting : report.settings) times.push_back(setting.*member);
    return times;
  }

  static ValidatedSetting setting_of(const TraceSteps& steps, const Link& link, const PolicyRun& run) {
    ValidatedSetting setting;
    setting.policy = run.policy;
    setting.predicted = steps.predict(run.policy, link);
    setting.measured = run.measured;
    setting.times = {*setting.predicted.step_time_ns, run.step_times_ns};
    setting.gradients = run.gradients;
    setting.inexact = inexact_keys(run.measured, setting.predicted);
    if (replay_commands(steps.step(run.policy), run.policy) != run.commands)
      setting.inexact.emplace_back("commands");
    return setting;
  }

  RunRequest request_;
  std::string trace_path_;
  std::int64_t policies_ = 30;
  int rounds_ = 7;
  ValidationBounds bounds_;
  DeviceOptions device_;
  std::optional<Link> link_;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_validate_command() {
  return std::make_unique<ValidateCommand>();
}

}  // namespace offprof
