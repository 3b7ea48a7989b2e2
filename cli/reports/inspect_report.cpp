#include "cli/reports/inspect_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "cli/tables/figure_text.h"
#include "cli/tables/metrics_table.h"
#include "cli/terminal/text_table.h"
#include "traces/format/metrics_io.h"

namespace offprof {
namespace {

struct KindNames {
  std::string_view key;   ///< in JSON
  std::string_view text;  ///< for a person
};

/// In the order of InspectedKind.
constexpr std::array<KindNames, 6> kKinds = {{{"model", "TorchScript model"},
                                              {"checkpoint", "checkpoint"},
                                              {"trace", "trace"},
                                              {"policy", "policy"},
                                              {"baseline", "baseline"},
                                              {"report", "report"}}};

const KindNames& names_of(InspectedKind kind) {
  return kKinds.at(static_cast<std::size_t>(kind));
}

Bytes bytes_of(const std::vector<ListedTensor>& tensors) {
  Bytes bytes = 0;
  for (const ListedTensor& tensor : tensors) bytes += tensor.bytes;
  return bytes;
}

std::string count_text(const InspectReport& report) {
  return counted(static_cast<std::int64_t>(report.tensors->size()),
                 report.kind == InspectedKind::kTrace ? "saved tensor" : "tensor");
}

std::string shape_text(const ListedTensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.sizes, ","));
}

std::string tensors_text(const InspectReport& report, const Page& page) {
  if (!report.tensors) return {};
  TextTable table(
      {{"tensor", Align::kLeft}, {"dtype", Align::kLeft}, {"shape", Align::kLeft}, {"bytes"}, {""}});
  const auto row = [&](std::string name, std::string dtype, std::string shape, Bytes bytes) {
    table.add_row({std::move(name), std::move(dtype), std::move(shape), std::to_string(bytes),
                   "(" + format_bytes(bytes) + ")"});
  };
  for (const ListedTensor& tensor : *report.tensors)
    row(tensor.name, tensor.dtype, shape_text(tensor), tensor.bytes);
  table.add_rule();
  row(count_text(report), "", "", bytes_of(*report.tensors));
  return "\n" + table.render(page);
}

std::string summary_text(const InspectReport& report, const Page& page) {
  if (!report.summary) return {};
  const StepSummary& summary = *report.summary;
  std::string text;
  if (summary.model) text += labelled("model", summary.model->name, page);
  if (summary.settings)
    text += labelled("inputs", fmt::format("{}", fmt::join(summary.settings->inputs, "  ")), page);
  if (summary.environment) text += labelled("device", summary.environment->device, page);
  if (summary.policy)
    text += labelled("policy", fmt::format("{}: {}", summary.policy->name, describe(*summary.policy)), page);
  text += labelled("tuned for", report.made_for.empty() ? "" : "run " + report.made_for, page);
  if (summary.metrics == Metrics{}) return text;
  const bool is_simulated = summary.simulated.value_or(false);
  return text + "\n" + metrics_table({{is_simulated ? "predicted" : "measured", summary.metrics}}, page);
}

}  // namespace

InspectReport inspect_trace(const Trace& trace, const std::string& file) {
  InspectReport report{.file = file, .kind = InspectedKind::kTrace};
  std::vector<ListedTensor>& tensors = report.tensors.emplace();
  for (const SavedTensor& saved : trace.program.saved)
    tensors.push_back({fmt::format("{} {}", tensors.size(), trace.program.names[saved.op]),
                       saved.layout->dtype, saved.layout->sizes, saved.bytes});
  report.summary = figures_of(trace, file);
  return report;
}

InspectReport inspect_policy(const PolicyFile& policy, const std::string& file) {
  InspectReport report{.file = file, .kind = InspectedKind::kPolicy, .made_for = policy.trace_fingerprint};
  StepSummary& summary = report.summary.emplace(StepSummary{.source = file});
  summary.policy = policy.policy;
  if (!policy.predicted) return report;
  summary.metrics = *policy.predicted;
  summary.simulated = true;
  return report;
}

nlohmann::ordered_json to_json(const InspectReport& report) {
  nlohmann::ordered_json json = {{"file", report.file}, {"kind", names_of(report.kind).key}};
  if (report.tensors) {
    json["tensor_count"] = report.tensors->size();
    json["tensor_bytes"] = bytes_of(*report.tensors);
    auto rows = nlohmann::ordered_json::array();
    for (const ListedTensor& tensor : *report.tensors)
      rows.push_back(
          {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.sizes}, {"bytes", tensor.bytes}});
    json["tensors"] = std::move(rows);
  }
  if (!report.summary) return json;
  json.update(run_description_to_json(*report.summary));
  const bool is_simulated = report.summary->simulated.value_or(false);
  if (report.summary->metrics != Metrics{})
    json[is_simulated ? "predicted" : "measured"] = metrics_to_json(report.summary->metrics);
  if (!report.made_for.empty()) json["made_for"] = report.made_for;
  return json;
}

std::string to_text(const InspectReport& report, const Page& page) {
  std::string head = fmt::format("{}: {}", report.file, names_of(report.kind).text);
  if (report.tensors)
    head += fmt::format(", {}, {}", count_text(report), format_bytes(bytes_of(*report.tensors)));
  return wrap(head, page.width, 0) + "\n" + summary_text(report, page) + tensors_text(report, page);
}

}  // namespace offprof
