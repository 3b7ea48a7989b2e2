#include "cli/reports/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/headline.h"
#include "cli/tables/ledger_table.h"
#include "cli/tables/metrics_table.h"
#include "cli/tables/step_size.h"
#include "cli/tables/tracing_text.h"
#include "cli/terminal/text_table.h"
#include "engine/devices/virtual_gpu/value_reads.h"
#include "traces/format/gradient_error_io.h"
#include "traces/format/metrics_io.h"

namespace offprof {
namespace {

/// The results of offprof's checks of itself, one line each.
class Verdicts {
 public:
  explicit Verdicts(const Page& page) : page_(page) {}
  void add(const std::string& what, Tone tone, const std::string& verdict) {
    text_ += fmt::format("{:<11}{}\n", what, page_.paint(tone, verdict));
  }
  void add(const LabelledLine& line) {
    constexpr std::size_t kIndent = 11;
    add(line.label, line.tone, wrap(line.text, page_.width, kIndent));
  }
  const std::string& text() const { return text_; }

 private:
  const Page& page_;
  std::string text_;
};

/// Returns true if `a` is the smaller error. A value that is not finite counts as the largest.
bool is_nearer(const GradientError& a, const GradientError& b) {
  if (!std::isfinite(a.relative_norm)) return false;
  return !std::isfinite(b.relative_norm) || a.relative_norm < b.relative_norm;
}

std::string lossy_text(const std::vector<GradientError>& errors) {
  const auto worst = std::ranges::max_element(errors, is_nearer);
  if (worst == errors.end()) return "no parameter has a gradient";
  return fmt::format(
      "lossy encoding: the error of {} is {:.2g} of its norm (cosine {:.6f}), all others are smaller",
      worst->parameter, worst->relative_norm, worst->cosine);
}

/// Returns a table of the parameters with the largest gradient errors.
std::string gradient_error_table(std::vector<GradientError> errors, const Page& page) {
  constexpr std::size_t kMostShown = 10;
  if (errors.empty()) return {};
  std::ranges::stable_sort(errors, [](const auto& a, const auto& b) { return is_nearer(b, a); });
  TextTable table({{"gradient of", Align::kLeft},
                   {"largest error", Align::kRight},
                   {"error/norm", Align::kRight},
                   {"cosine", Align::kRight}});
  for (std::size_t i = 0; i < std::min(kMostShown, errors.size()); ++i)
    table.add_row({errors[i].parameter, fmt::format("{:.3g}", errors[i].max_abs),
                   fmt::format("{:.3g}", errors[i].relative_norm), fmt::format("{:.6f}", errors[i].cosine)});
  std::string text = table.render(page);
  if (errors.size() > kMostShown)
    text += fmt::format("  ... and {} more with smaller errors\n", errors.size() - kMostShown);
  return text + "\n";
}

void add_gradients(Verdicts& verdicts, const RunReport& report) {
  const std::string& gradients = report.gradients;
  const std::vector<GradientError>& errors = report.gradient_errors;
  if (gradients == "lossy")
    verdicts.add({"gradients", lossy_text(errors), Tone::kPlain});
  else if (gradients == "bitwise")
    verdicts.add("gradients", Tone::kGood, "bitwise equal to those of a run without offloading");
  else if (gradients == "not applicable" && !report.run.times_are_modelled)
    verdicts.add("gradients", Tone::kPlain, "not compared: a script cannot repeat a step");
  else if (gradients == "not applicable")
    verdicts.add("gradients", Tone::kPlain, "not applicable: a virtual GPU computes no numbers");
  else
    verdicts.add("gradients", gradients_pass(gradients) ? Tone::kWarning : Tone::kBad, gradients);
}

void add_streams(Verdicts& verdicts, const std::vector<StreamHazard>& hazards) {
  if (hazards.empty()) verdicts.add("streams", Tone::kGood, "no races");
  for (const StreamHazard& hazard : hazards)
    verdicts.add("streams", Tone::kBad,
                 fmt::format("{}: {}, then {}", hazard.what, hazard.first, hazard.second));
}

/// Returns `24 of 30 steps: 310 saved tensors, peak 1.2 GiB`.
std::string group_text(const StepGroup& group, std::int64_t all) {
  return fmt::format("{} of {} steps: {} saved tensors, peak {}{}", group.steps, all, group.saved_tensors,
                     format_bytes(group.peak_bytes), group.is_recorded ? " (recorded)" : "");
}

void add_script(Verdicts& verdicts, const ScriptOutcome& script) {
  std::int64_t all = 0;
  for (const StepGroup& group : script.groups) all += group.steps;
  if (script.groups.size() > 1)
    for (const StepGroup& group : script.groups)
      verdicts.add("steps", group.is_recorded ? Tone::kGood : Tone::kPlain, group_text(group, all));
  if (script.skipped_steps > 0)
    verdicts.add("steps", Tone::kPlain,
                 fmt::format("{} further steps differed from the recorded ones and were skipped",
                             script.skipped_steps));
  if (script.saved_by_user_hooks > 0)
    verdicts.add(
        "hooks", Tone::kPlain,
        fmt::format("{} tensors went through saved-tensor hooks of the script or of checkpointed modules, "
                    "which take precedence",
                    script.saved_by_user_hooks));
}

nlohmann::ordered_json to_json(const ScriptOutcome& script) {
  auto groups = nlohmann::ordered_json::array();
  for (const StepGroup& group : script.groups)
    groups.push_back({{"steps", group.steps},
                      {"saved_tensors", group.saved_tensors},
                      {"peak_bytes", group.peak_bytes},
                      {"is_recorded", group.is_recorded}});
  return {{"step_groups", std::move(groups)},
          {"skipped_steps", script.skipped_steps},
          {"saved_by_user_hooks", script.saved_by_user_hooks}};
}

/// Adds the step time of the replay and how far it is from the measured one.
void add_replayed_time(Verdicts& verdicts, const RunReport& report) {
  const std::optional<double> measured = headline_figures(report.run.metrics).step_ns;
  const std::optional<double> replayed = headline_figures(report.predicted).step_ns;
  if (!measured || !replayed) return;
  const std::string time = figure_text(MetricUnit::kNanoseconds, replayed);
  verdicts.add("step time", Tone::kPlain,
               *measured == *replayed
                   ? "predicted exactly by a replay"
                   : fmt::format("{} by a replay{}", time, percent_suffix(*measured, *replayed)));
}

std::string verdict_text(const RunReport& report, const Page& page) {
  Verdicts verdicts(page);
  add_gradients(verdicts, report);
  verdicts.add(memory_verdict(report));
  if (!report.predicted_by_tune) add_replayed_time(verdicts, report);
  if (report.checked_streams) add_streams(verdicts, report.hazards);
  if (report.script) add_script(verdicts, *report.script);
  std::string times = times_line(report.run.times_are_modelled, page, report.step_range.has_value());
  if (report.run.settings) times += reruns_text(*report.run.settings, page);
  if (!report.run.environment) return verdicts.text() + times;
  Verdicts tracing(page);
  for (const LabelledLine& line : tracing_lines(report.run.tracing, *report.run.environment))
    tracing.add(line);
  return verdicts.text() + times + tracing.text();
}

nlohmann::ordered_json hazards_to_json(const std::vector<StreamHazard>& hazards) {
  auto json = nlohmann::ordered_json::array();
  for (const StreamHazard& hazard : hazards)
    json.push_back({{"what", hazard.what}, {"first", hazard.first}, {"second", hazard.second}});
  return json;
}

}  // namespace

std::vector<std::string> inexact_keys(const Metrics& measured, const Metrics& predicted) {
  std::vector<std::string> keys;
  for (const MetricKey& key : metric_keys())
    if (key.unit == MetricUnit::kBytes && key.is_predicted && key.get(measured) != key.get(predicted))
      keys.emplace_back(key.name);
  return keys;
}

std::string difference_text(const std::string& key, const Metrics& measured, const Metrics& predicted) {
  const MetricKey* const metric = find_metric(key);
  const auto of_run = metric == nullptr ? std::nullopt : metric->get(measured);
  const auto of_replay = metric == nullptr ? std::nullopt : metric->get(predicted);
  if (!of_run || !of_replay) return key + " differs";
  return fmt::format("{} differs: {} measured, {} predicted", key, figure_text(metric->unit, of_run),
                     figure_text(metric->unit, of_replay));
}

bool may_differ_by_addresses(const std::string& key, const Metrics& measured, const Metrics& predicted) {
  constexpr double kMostByAddresses = 0.05;
  if (key != "device_allocated_peak_bytes" && key != "device_reserved_peak_bytes") return false;
  const MetricKey* const metric = find_metric(key);
  const auto of_run = metric->get(measured), of_replay = metric->get(predicted);
  return of_run && of_replay && std::abs(*of_replay - *of_run) <= kMostByAddresses * *of_run;
}

nlohmann::ordered_json to_json(const RunReport& report) {
  nlohmann::ordered_json json = run_description_to_json(report.run);
  add_tracing_figures(json, report.run.tracing);
  json["measured"] = metrics_to_json(report.run.metrics);
  json.update(rate_to_json(report.step_size, report.run.metrics));
  if (report.step_range) json["step_time_range_ns"] = to_json(*report.step_range);
  // A replay of the run's own trace is a check, not a prediction made beforehand.
  json[report.predicted_by_tune ? "predicted" : "replayed"] = metrics_to_json(report.predicted);
  json["inexact"] = report.inexact;
  json["gradients"] = report.gradients;
  if (!report.gradient_errors.empty())
    json["gradient_errors"] = gradient_errors_to_json(report.gradient_errors);
  if (!report.notes.empty()) json["notes"] = report.notes;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  if (report.checked_streams) json["stream_hazards"] = hazards_to_json(report.hazards);
  if (report.script) json["script"] = to_json(*report.script);
  json["ledger"] = ledger_to_json(report.ledger);
  if (!report.trace_path.empty()) json["trace"] = report.trace_path;
  return json;
}

LabelledLine memory_verdict(const RunReport& report) {
  const char* label = "memory";
  if (!report.inexact.empty())
    return {label, fmt::format("NOT as predicted: {}", fmt::join(report.inexact, ", ")), Tone::kBad};
  if (tells_of_value_reads(report.notes))
    return {label,
            "prediction exact to the byte for a step that read zeros as values (see the warning): if a GPU's "
            "values lead to other shapes or branches, its memory differs",
            Tone::kWarning};
  return {label, "prediction exact to the byte", Tone::kGood};
}

std::string next_text(const RunReport& report) {
  if (report.trace_path.empty() || report.trace_path == "-")
    return "To keep the trace for tune, simulate and view:\n" +
           next_line(with_output(report.argv, "trace.json"));
  if (report.predicted_by_tune)
    return next_line({"gate", report.trace_path, "--update", "--baseline", "baseline.json"});
  if (report.run.tracing && report.run.tracing->lost_records()) return next_line({"view", report.trace_path});
  return next_line({"tune", report.trace_path, "-o", "policy.json"});
}

std::string to_text(const RunReport& report, const Page& page) {
  return text_without_next(report, page) + next_text(report);
}

std::string text_without_next(const RunReport& report, const Page& page) {
  std::vector<MetricsColumn> columns = {
      {report.run.times_are_modelled ? "virtual GPU" : "measured", report.run.metrics}};
  if (report.predicted_by_tune || page.details || !report.inexact.empty())
    columns.push_back({report.predicted_by_tune ? "tune predicted" : "replayed", report.predicted});
  std::optional<HeadlineFigures> without;
  if (report.without_offloading) without = headline_figures(*report.without_offloading);
  const std::string verdict = headline(without, headline_figures(report.run.metrics), 0, report.step_range) +
                              rate_beside(report.step_size, report.run.metrics) +
                              (without ? ", against the replayed step without offloading" : "");
  std::string subject = fmt::format("{}, policy {}: {}", report.run.model->name, report.run.policy->name,
                                    describe(*report.run.policy));
  if (const auto& settings = report.run.settings; settings && settings->parameters)
    subject += "; parameters " + describe(settings->parameters);
  return page.paint(Tone::kStrong, wrap(verdict, page.width, 0)) + "\n" + wrap(subject, page.width, 0) +
         "\n\n" + metrics_table(columns, page) + "\n" +
         (page.details ? ledger_table(report.ledger, page) + "\n" : "") +
         gradient_error_table(report.gradient_errors, page) + verdict_text(report, page);
}

}  // namespace offprof
