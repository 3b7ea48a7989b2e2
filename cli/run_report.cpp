#include "cli/run_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/ledger_table.h"
#include "cli/metrics_table.h"
#include "traces/metrics_io.h"

namespace offprof {
namespace {

std::string verdict_text(const RunReport& report, const Page& page) {
  const bool bitwise = report.gradients == "bitwise";
  std::string text =
      "gradients  " + (bitwise ? page.paint(Tone::kGood, "bitwise those of the run without offloading")
                               : page.paint(Tone::kBad, report.gradients));
  text += "\nmemory     ";
  if (report.inexact.empty()) return text + page.paint(Tone::kGood, "predicted to the byte") + "\n";
  return text + page.paint(Tone::kBad, fmt::format("NOT as predicted: {}", fmt::join(report.inexact, ", "))) +
         "\n";
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
  json["measured"] = metrics_to_json(report.run.metrics);
  // What the run's own trace replays to is a check, not a prediction made beforehand.
  json[report.predicted_by_tune ? "predicted" : "replayed"] = metrics_to_json(report.predicted);
  json["inexact"] = report.inexact;
  json["gradients"] = report.gradients;
  json["ledger"] = ledger_to_json(report.ledger);
  if (!report.trace_path.empty()) json["trace"] = report.trace_path;
  return json;
}

std::string to_text(const RunReport& report, const Page& page) {
  const char* heading = report.predicted_by_tune ? "tune predicted" : "replayed";
  const std::string headline = fmt::format("{}, policy {}: {}", report.run.model->name,
                                           report.run.policy->name, describe(*report.run.policy));
  return wrap(headline, page.width, 0) + "\n\n" +
         metrics_table({{"measured", report.run.metrics}, {heading, report.predicted}}, page) + "\n" +
         ledger_table(report.ledger, page) + "\n" + verdict_text(report, page) + next_text(report);
}

}  // namespace offprof
