#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/gate/gate_config.h"
#include "cli/gate/gate_recording.h"
#include "cli/gate/gate_report.h"
#include "cli/gate/gate_update.h"
#include "cli/options/options.h"
#include "cli/plugin/foreground_command.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

class GateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    source_.add_to(app,
                   "Trace to check, or a JSON report of run or simulate (default: the models of --config)");
    app.add_option(
           "--baseline", baseline_.path,
           "Baseline to compare with: a file written by --update, a trace or a JSON report (default: none, "
           "which absolute limits do not need)")
        ->type_name("FILE");
    app.add_option(
           "--key", baseline_.key,
           "Baseline in a file with several, such as llama/virtual:h100-80gb; with --config only this one")
        ->type_name("KEY");
    app.add_option("--config", config_, "Models, devices, limits and baselines (default offprof.toml)")
        ->type_name("FILE");
    app.add_option("--limit", limit_texts_, limit_help())->type_name("EXPR")->allow_extra_args(false);
    app.add_flag("--update", update_, "Write the metrics of the trace to the baseline; check nothing");
    app.add_flag("--add", add_,
                 "Add a run to the baseline, for the standard deviation of times; check nothing");
    app.add_flag("--explain", explains_, "List the places that save more or less than in the baseline");
    app.add_flag("--allow-different", options_.allow_different,
                 "Compare even if the model, inputs, loss, optimizer, device or LibTorch differ");
    app.add_flag("--force", options_.allow_lost_records, "Check times even if the tracer lost GPU activity");
    app.add_option("--report", report_texts_,
                   "Also write the report in another format, repeatable: markdown=summary.md, junit=gate.xml")
        ->type_name("FORMAT=FILE")
        ->allow_extra_args(false);
    app.add_option(
           "--source-root", source_roots_,
           "Folder of the source files that github annotates, repeatable (default: the working folder and "
           "the programs' folders)")
        ->type_name("DIR")
        ->allow_extra_args(false);
    add_output_option(app, output_, "File for the report (default -: standard output)");
  }

  FormatChoices formats() const override {
    FormatChoices formats = common_formats();
    formats.insert(formats.end(), {{"markdown", ReportFormat::kMarkdown},
                                   {"github", ReportFormat::kGithub},
                                   {"junit", ReportFormat::kJunit}});
    return formats;
  }

  ExitStatus run(Context& context) override {
    for (const std::string& text : limit_texts_)
      read_for_option("--limit", [&] { options_.limits.push_back(parse_limit(text)); });
    for (const std::string& text : report_texts_)
      read_for_option("--report", [&] { reports_.push_back(parse_report(text)); });
    for (const auto& [format, path] : reports_) check_writable(path);
    check_writable(output_);
    if (update_ && add_) throw input_error("--update and --add exclude each other", "Give one of them.");
    try {
      return source_.given() ? gate_trace(context) : gate_config(context);
    } catch (const EndedBySignal& end) {
      return status_of_signal(end.signal);
    }
  }

 private:
  static std::string limit_help() {
    std::string text =
        "Limit KEY<=BOUND or KEY>=BOUND, repeatable. BOUND is relative to the baseline (+10%, +64MiB; +3sd: "
        "standard "
        "deviations over the runs of the baseline) or absolute (8GiB, 20ms). Replaces the default limits:";
    for (const Limit& limit : default_limits()) text += fmt::format(" {}{}", limit.key, limit.text);
    return text + fmt::format(" (+3sd from {} runs on)", kLeastRunsForDeviation);
  }

  /// Parses `FORMAT=FILE`.
  std::pair<ReportFormat, std::string> parse_report(const std::string& text) const {
    const std::size_t equals = text.find('=');
    std::vector<std::string> names;
    for (const auto& [name, format] : formats()) {
      names.push_back(name);
      if (equals != std::string::npos && equals + 1 < text.size() && text.substr(0, equals) == name)
        return {format, text.substr(equals + 1)};
    }
    if (equals == std::string::npos || equals + 1 == text.size())
      throw input_error(fmt::format("'{}' names no file", text), "Write FORMAT=FILE: junit=gate.xml");
    throw_not_among(text.substr(0, equals), names);
  }

  /// Returns true if one of the limits is relative to a baseline; without limits, the default ones are.
  static bool need_baseline(const std::vector<Limit>& limits) {
    return limits.empty() || std::ranges::any_of(limits, &Limit::needs_baseline);
  }

  bool changes_baselines() const { return update_ || add_; }

  ExitStatus gate_trace(Context& context) {
    if (!config_.empty())
      throw input_error("--config lists the models to check, and a trace is given too",
                        "Leave out one of them.");
    const std::string trace = source_.path();
    context.detail("reading " + trace);
    const StepSummary now = read_figures(trace);
    if (changes_baselines()) {
      if (baseline_.path.empty())
        throw input_error("--baseline is missing: the file to write", "Add --baseline baseline.json.");
      return change_baselines(context, baseline_.path, {{baseline_.key, now}}, false);
    }
    return finish(context, {.gates = {checked(context, now, trace, baseline_, options_)}});
  }

  ExitStatus gate_config(Context& context) {
    const bool is_named = !config_.empty();
    if (!is_named && !std::filesystem::exists(kConfigName))
      throw input_error(fmt::format("no trace is given, and there is no {} here", kConfigName),
                        "Name a trace: offprof gate t.json --baseline baseline.json. Or list models in "
                        "offprof.toml.");
    if (is_named && !std::filesystem::exists(config_))
      throw input_error(
          fmt::format("--config: there is no file '{}'", config_),
          fmt::format("Name a TOML file with [gate.models.NAME] for each model; without --config "
                      "it is {}.",
                      kConfigName));
    const GateConfig config = read_gate_config(is_named ? config_ : kConfigName);
    if (!baseline_.path.empty())
      throw input_error("--baseline is for a trace; the file of the models' baselines is in " + config.path,
                        "Leave it out.");
    std::vector<std::pair<std::string, StepSummary>> recorded;
    GateSuite suite{.gates = {}, .is_list = true, .config = config_};
    for (const GateJob& job : chosen_jobs(config)) {
      const StepSummary now = recorded_job(context, job);
      recorded.emplace_back(job.key, now);
      if (changes_baselines()) continue;
      GateOptions options = options_;
      if (options.limits.empty()) options.limits = job.limits;
      BaselinePlace place{config.baselines, job.key};
      if (!need_baseline(options.limits) && !exists(place)) place.path.clear();
      GateReport report = checked(context, now, job.trace, place, options);
      report.source_roots.push_back(job.source_root);
      suite.gates.push_back(std::move(report));
    }
    if (changes_baselines()) return change_baselines(context, config.baselines, recorded, true);
    return finish(context, suite);
  }

  std::vector<GateJob> chosen_jobs(const GateConfig& config) const {
    std::vector<GateJob> chosen;
    std::vector<std::string> keys;
    for (const GateJob& job : config.jobs) {
      keys.push_back(job.key);
      if (baseline_.key.empty() || baseline_.key == job.key) chosen.push_back(job);
    }
    if (chosen.empty()) read_for_option("--key", [&] { throw_not_among(baseline_.key, keys); });
    return chosen;
  }

  static StepSummary recorded_job(Context& context, const GateJob& job) {
    StatusLine status = context.status_line();
    const std::string what = (job.trace.empty() ? "recording " : "reading ") + job.key;
    status.show(what);
    context.detail(what);
    StepSummary figures = figures_of_job(job);
    status.wipe();
    return figures;
  }

  GateReport checked(Context& context, const StepSummary& now, const std::string& trace,
                     const BaselinePlace& place, const GateOptions& options) const {
    const bool needs_baseline = need_baseline(options.limits);
    if (place.path.empty() && needs_baseline)
      throw input_error("--baseline is missing: a limit is relative to it",
                        "Add --baseline baseline.json, or give only absolute limits: --limit "
                        "'device_peak_bytes<=8GiB'.");
    StepSummary base;
    const bool has_baseline = !place.path.empty() && (needs_baseline || std::filesystem::exists(place.path));
    if (has_baseline) {
      context.detail("reading " + place.path);
      base = read_baseline(place, trace);
    }
    GateReport report{.trace = now.source,
                      .baseline = has_baseline ? place.path : "",
                      .verdict = check_gate(base, now, options)};
    report.key = place.key;
    report.times_are_modelled = now.times_are_modelled;
    report.explains = explains_;
    report.source_roots = source_roots_.empty() ? std::vector<std::string>{"."} : source_roots_;
    if (explains_ || !report.verdict.ok) explain(report, base, now);
    return report;
  }

  ExitStatus change_baselines(Context& context, const std::string& path,
                              const std::vector<std::pair<std::string, StepSummary>>& by_key,
                              bool is_list) const {
    UpdateReport report{.baseline = path, .is_list = is_list};
    report.written = write_baselines(path, by_key, add_ ? BaselineChange::kAddRun : BaselineChange::kReplace);
    for (const auto& [key, figures] : by_key) report.keys.push_back(key);
    context.publish(report, output_);
    return ExitStatus::kOk;
  }

  static std::string document(Context& context, const GateSuite& suite, ReportFormat format,
                              const std::string& path) {
    switch (format) {
      case ReportFormat::kMarkdown:
        return to_markdown(suite);
      case ReportFormat::kGithub:
        return to_github(suite);
      case ReportFormat::kJunit:
        return to_junit(suite);
      case ReportFormat::kText:
      case ReportFormat::kJson:
        break;
    }
    return context.document(suite, format, path);
  }

  ExitStatus finish(Context& context, const GateSuite& suite) const {
    context.print(document(context, suite, context.options().format, output_), output_);
    for (const auto& [format, path] : reports_) context.print(document(context, suite, format, path), path);
    return suite.ok() ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

  TraceArgument source_;
  BaselinePlace baseline_;
  std::string config_;
  std::vector<std::string> limit_texts_, report_texts_, source_roots_;
  GateOptions options_;
  std::vector<std::pair<ReportFormat, std::string>> reports_;
  bool update_ = false, add_ = false, explains_ = false;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_gate_command() {
  return std::make_unique<GateCommand>();
}

}  // namespace offprof
