#include "cli/gate/gate_update.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "cli/base/version.h"
#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/analysis/baselines.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

Error key_is_missing(const std::string& path) {
  return input_error(fmt::format("{} has baselines by key, and no key is given", path),
                     fmt::format("Add --key, one of: {}.", fmt::join(BaselineFile(path).keys(), ", ")));
}

/// Throws if the file exists and is no baseline. It may be a trace to compare with, which would be lost.
void refuse_to_overwrite_others(const std::string& path) {
  if (!std::filesystem::is_regular_file(path) || is_baseline(read_file(path))) return;
  throw input_error(fmt::format("{} exists and is not a baseline: it is not overwritten", path),
                    "Name another file, or remove this one first.");
}

/// Returns what to write in place of the baseline `old`.
StepSummary changed(const StepSummary& old, const StepSummary& now, BaselineChange change) {
  return change == BaselineChange::kAddRun ? add_run(old, now) : now;
}

nlohmann::ordered_json to_json(const StepSummary& written) {
  nlohmann::ordered_json json = {{"trace", written.source},
                                 {"runs", written.earlier.size() + 1},
                                 {"metrics", metrics_to_json(written.metrics)}};
  if (written.times_are_modelled) json["times_are_modelled"] = true;
  return json;
}

}  // namespace

bool exists(const BaselinePlace& place) {
  const auto& [path, key] = place;
  if (!std::filesystem::exists(path)) return false;
  return key.empty() || !has_baseline_keys(path) || BaselineFile(path).has(key);
}

StepSummary read_baseline(const BaselinePlace& place, const std::string& trace) {
  const auto& [path, key] = place;
  if (!std::filesystem::exists(path)) {
    const std::string with_key = key.empty() ? "" : " --key " + shell_word(key);
    throw input_error(fmt::format("there is no baseline {}", path),
                      trace.empty() ? "Create it: offprof gate --update" + with_key
                                    : fmt::format("Create it: offprof gate {} --update --baseline {}{}",
                                                  shell_word(trace), shell_word(path), with_key));
  }
  if (!key.empty()) return BaselineFile(path).at(key);
  if (has_baseline_keys(path)) throw key_is_missing(path);
  return read_figures(path);
}

std::vector<StepSummary> write_baselines(const std::string& path,
                                         const std::vector<std::pair<std::string, StepSummary>>& by_key,
                                         BaselineChange change) {
  refuse_to_overwrite_others(path);
  const bool exists = std::filesystem::exists(path);
  std::vector<StepSummary> written;
  if (by_key.size() == 1 && by_key.front().first.empty()) {
    if (exists && has_baseline_keys(path)) throw key_is_missing(path);
    const StepSummary& now = by_key.front().second;
    written.push_back(exists && change == BaselineChange::kAddRun ? add_run(read_figures(path), now) : now);
    write_file(path, format_baseline(written.front(), program_version()));
    return written;
  }
  BaselineFile file = exists ? BaselineFile(path) : BaselineFile();
  for (const auto& [key, now] : by_key) {
    written.push_back(file.has(key) ? changed(file.at(key), now, change) : now);
    file.set(key, written.back(), program_version());
  }
  write_file(path, file.format());
  return written;
}

nlohmann::ordered_json to_json(const UpdateReport& report) {
  nlohmann::ordered_json json = {{"updated", true}, {"baseline", report.baseline}};
  if (!report.is_list) {
    if (!report.keys.front().empty()) json["key"] = report.keys.front();
    json.update(to_json(report.written.front()));
    return json;
  }
  json["baselines"] = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < report.keys.size(); ++i)
    json["baselines"][report.keys[i]] = to_json(report.written[i]);
  return json;
}

std::string to_text(const UpdateReport& report, const Page& page) {
  bool modelled = false;
  for (const StepSummary& written : report.written) modelled |= written.times_are_modelled;
  const std::string times = modelled ? "\n" + times_line(true, page) : "";
  if (!report.is_list) {
    const StepSummary& written = report.written.front();
    TextTable table({{"metric", Align::kLeft}, {"baseline", Align::kRight}});
    for (const MetricKey& key : metric_keys())
      if (const auto value = key.get(written.metrics))
        table.add_row({std::string(key.name), format_metric(key.unit, *value)});
    const std::string runs =
        written.earlier.empty() ? "" : fmt::format(", the newest of {} runs", written.earlier.size() + 1);
    const std::string key = report.keys.front().empty() ? "" : fmt::format(" ({})", report.keys.front());
    return fmt::format("{}{} now contains the metrics of {}{}:\n\n{}{}", report.baseline, key, written.source,
                       runs, table.render(page), times);
  }
  TextTable table({{"baseline", Align::kLeft},
                   {"device_peak_bytes", Align::kRight},
                   {"step_time_ns", Align::kRight},
                   {"runs", Align::kRight}});
  for (std::size_t i = 0; i < report.keys.size(); ++i) {
    const Metrics& metrics = report.written[i].metrics;
    const auto figure = [&](const char* name) {
      const MetricKey* const key = find_metric(name);
      return figure_text(key->unit, key->get(metrics));
    };
    table.add_row({report.keys[i], figure("device_peak_bytes"), figure("step_time_ns"),
                   std::to_string(report.written[i].earlier.size() + 1)});
  }
  return fmt::format("{} is written:\n\n{}{}", report.baseline, table.render(page), times);
}

}  // namespace offprof
