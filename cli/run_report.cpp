#include "cli/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/figure_text.h"
#include "cli/ledger_table.h"
#include "cli/metrics_table.h"
#include "cli/tracing_text.h"
#include "traces/metrics_io.h"

namespace offprof {
namespace {

/// What the program found out about itself, a line each.
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

void add_gradients(Verdicts& verdicts, const std::string& gradients) {
  if (gradients == "bitwise")
    verdicts.add("gradients", Tone::kGood, "bitwise those of the run without offloading");
  else if (gradients == "not applicable")
    verdicts.add("gradients", Tone::kPlain, "not applicable: a virtual GPU computes no numbers");
  else
    verdicts.add("gradients", Tone::kBad, gradients);
}

void add_streams(Verdicts& verdicts, const std::vector<StreamHazard>& hazards) {
  if (hazards.empty()) verdicts.add("streams", Tone::kGood, "in order");
  for (const StreamHazard& hazard : hazards)
    verdicts.add("streams", Tone::kBad,
                 fmt::format("{}: {}, then {}", hazard.what, hazard.first, hazard.second));
}

std::string verdict_text(const RunReport& report, const Page& page) {
  Verdicts verdicts(page);
  add_gradients(verdicts, report.gradients);
  if (report.inexact.empty())
    verdicts.add("memory", Tone::kGood, "predicted to the byte");
  else
    verdicts.add("memory", Tone::kBad, fmt::format("NOT as predicted: {}", fmt::join(report.inexact, ", ")));
  if (report.checked_streams) add_streams(verdicts, report.hazards);
  const std::string times = times_line(report.run.times_are_modelled, page);
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

std::string next_text(const RunReport& report) {
  if (report.trace_path.empty() || report.trace_path == "-")
    return "Next: add -o trace.json to keep the trace, which tune, simulate and view read\n";
  if (report.predicted_by_tune)
    return fmt::format("Next: offprof gate --update --trace {} --baseline baseline.json\n",
                       report.trace_path);
  return fmt::format("Next: offprof tune --trace {} -o policy.json\n", report.trace_path);
}

}  // namespace

std::vector<std::string> inexact_keys(const Metrics& measured, const Metrics& predicted) {
  std::vector<std::string> keys;
  for (const MetricKey& key : metric_keys())
    if (key.unit == MetricUnit::kBytes && key.get(measured) != key.get(predicted))
      keys.emplace_back(key.name);
  return keys;
}

nlohmann::ordered_json to_json(const RunReport& report) {
  nlohmann::ordered_json json = run_description_to_json(report.run);
  add_tracing_figures(json, report.run.tracing);
  json["measured"] = metrics_to_json(report.run.metrics);
  // What the run's own trace replays to is a check, not a prediction made beforehand.
  json[report.predicted_by_tune ? "predicted" : "replayed"] = metrics_to_json(report.predicted);
  json["inexact"] = report.inexact;
  json["gradients"] = report.gradients;
  if (!report.notes.empty()) json["notes"] = report.notes;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  if (report.checked_streams) json["stream_hazards"] = hazards_to_json(report.hazards);
  json["ledger"] = ledger_to_json(report.ledger);
  if (!report.trace_path.empty()) json["trace"] = report.trace_path;
  return json;
}

std::string to_text(const RunReport& report, const Page& page) {
  const char* measured = report.run.times_are_modelled ? "virtual GPU" : "measured";
  const char* heading = report.predicted_by_tune ? "tune predicted" : "replayed";
  const std::string headline = fmt::format("{}, policy {}: {}", report.run.model->name,
                                           report.run.policy->name, describe(*report.run.policy));
  return wrap(headline, page.width, 0) + "\n\n" +
         metrics_table({{measured, report.run.metrics}, {heading, report.predicted}}, page) + "\n" +
         ledger_table(report.ledger, page) + "\n" + verdict_text(report, page) + next_text(report);
}

}  // namespace offprof
