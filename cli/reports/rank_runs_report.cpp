#include "cli/reports/rank_runs_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

std::string bytes_text(std::optional<Bytes> bytes) {
  return bytes ? format_bytes(*bytes) : "-";
}

std::string time_text(std::optional<Nanoseconds> time) {
  return time ? format_duration(*time) : "-";
}

std::string table_of(const std::vector<RankRun>& runs, const Page& page) {
  TextTable table({{"rank"},
                   {"requested"},
                   {"allocated"},
                   {"reserved"},
                   {"host"},
                   {"communicators"},
                   {"stall time"},
                   {"exposed"},
                   {"step time"}});
  for (const RankRun& run : runs) {
    const Metrics& metrics = run.report.run.metrics;
    table.add_row({std::to_string(run.rank), bytes_text(metrics.device_peak_bytes),
                   bytes_text(metrics.device_allocated_peak_bytes),
                   bytes_text(metrics.device_reserved_peak_bytes), bytes_text(metrics.host_peak_bytes),
                   std::to_string(run.collectives.communicators), time_text(metrics.exposed_ns),
                   time_text(run.collectives.exposed_ns), time_text(metrics.step_time_ns)});
  }
  return table.render(page);
}

using Parts = std::vector<std::pair<const char*, Bytes>>;

/// Returns what `resident` bytes, which are older than the step, consist of.
Parts resident_parts(const StepFloor& floor, Bytes resident) {
  const char* const optimizer =
      floor.is_optimizer_mixed ? "optimizer states and workspaces" : "optimizer states";
  Parts parts = {{"weights", floor.parameters},
                 {"master weights", floor.master_weights},
                 {optimizer, floor.optimizer},
                 {"inputs and buffers", floor.inputs}};
  for (auto& [what, bytes] : parts) {
    bytes = std::min(bytes, resident);
    resident -= bytes;
  }
  parts.emplace_back("workspaces of libraries, other tensors", resident);
  return parts;
}

/// Returns what the peak of the run consists of.
Parts peak_parts(const RankRun& run) {
  const DeviceContent& content = run.explanation.peak_content;
  Parts parts = resident_parts(run.floor, content.resident);
  for (const auto& [what, part] : content_parts())
    if (part != &DeviceContent::resident) parts.emplace_back(what, content.*part);
  return parts;
}

/// Returns a table of what the peaks of requested memory consist of.
std::string peak_table(const std::vector<RankRun>& runs, const Page& page) {
  TextTable table({{"rank"},
                   {"at the peak of requested memory", Align::kLeft},
                   {"bytes", Align::kRight},
                   {"share", Align::kRight}});
  for (const RankRun& run : runs)
    for (const auto& [what, bytes] : peak_parts(run))
      if (bytes != 0)
        table.add_row({std::to_string(run.rank), what, format_bytes(bytes),
                       share_text(bytes, run.explanation.peak_content.total)});
  return table.render(page);
}

/// Returns the rank with the highest peak, of one or more.
const RankRun& largest(const std::vector<RankRun>& runs) {
  return *std::ranges::max_element(
      runs, {}, [](const RankRun& run) { return run.report.run.metrics.device_peak_bytes; });
}

const RankRun& slowest(const std::vector<RankRun>& runs) {
  return *std::ranges::max_element(runs, {},
                                   [](const RankRun& run) { return run.report.run.metrics.step_time_ns; });
}

/// Returns the highest peak and the longest step, with their ranks.
std::string verdict(const std::vector<RankRun>& runs) {
  const RankRun& large = largest(runs);
  const RankRun& slow = slowest(runs);
  return fmt::format("peak {} at most (rank {}), step {} at most (rank {})",
                     bytes_text(large.report.run.metrics.device_peak_bytes), large.rank,
                     time_text(slow.report.run.metrics.step_time_ns), slow.rank);
}

/// Returns true if the report of a rank among others is printed, beside its row in the tables.
bool is_shown_whole(const RankRun& run, const Page& page) {
  return page.details || run.report.checked_streams || !run.report.inexact.empty();
}

/// Returns whether the memory of the ranks is as predicted: one line if all ranks have the same.
std::string memory_verdicts(const std::vector<RankRun>& runs, const Page& page) {
  const LabelledLine first = memory_verdict(runs.front().report);
  const auto is_like_first = [&](const RankRun& run) {
    return memory_verdict(run.report).text == first.text;
  };
  if (std::ranges::all_of(runs, is_like_first))
    return page.paint(first.tone, wrap("Memory of each rank: " + first.text + ".", page.width, 0)) + "\n";
  std::string text;
  for (const RankRun& run : runs) {
    const LabelledLine line = memory_verdict(run.report);
    const std::string words = fmt::format("Memory of rank {}: {}.", run.rank, line.text);
    text += page.paint(line.tone, wrap(words, page.width, 0)) + "\n";
  }
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const RankRunsReport& report) {
  auto ranks = nlohmann::ordered_json::array();
  for (const RankRun& run : report.runs) {
    nlohmann::ordered_json json = {{"rank", run.rank}};
    json.update(to_json(run.report));
    json.update(to_json(run.collectives));
    json["peak"] = to_json(run.explanation).at("peak");
    const StepFloor& floor = run.floor;
    json["peak"]["resident"] = {{"parameter_bytes", floor.parameters},
                                {"master_weight_bytes", floor.master_weights},
                                {"optimizer_bytes", floor.optimizer},
                                {"input_bytes", floor.inputs}};
    ranks.push_back(std::move(json));
  }
  return {{"world_size", report.world_size}, {"nodes", report.nodes}, {"ranks", std::move(ranks)}};
}

std::string to_text(const RankRunsReport& report, const Page& page) {
  const std::vector<RankRun>& runs = report.runs;
  const bool is_one = runs.size() == 1;
  std::string text;
  if (!is_one) text += page.paint(Tone::kStrong, wrap(verdict(runs), page.width, 0)) + "\n";
  for (const RankRun& run : runs)
    if (is_one || is_shown_whole(run, page))
      text += page.paint(Tone::kStrong, fmt::format("Rank {} of {}", run.rank, report.world_size)) + "\n" +
              text_without_next(run.report, page) + "\n";
  const std::string heading = fmt::format("Ranks of {}, each alone", report.world_size);
  RanksWithCollectives collectives;
  for (const RankRun& run : runs) collectives.emplace_back(run.rank, &run.collectives);
  const std::string notes =
      "Peaks of device memory in the recorded step, and of the host memory of offloaded tensors. Collectives "
      "are those of a measured step. " +
      collective_notes(collectives);
  text += page.paint(Tone::kStrong, heading) + "\n" + table_of(runs, page) + "\n" + peak_table(runs, page) +
          collective_table(collectives, page) + "\n";
  if (!is_one) text += memory_verdicts(runs, page) + "\n";
  return text + wrap(notes, page.width, 0) + "\n" + next_text(largest(runs).report);
}

}  // namespace offprof
