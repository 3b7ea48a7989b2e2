#include "cli/reports/view_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/ledger_table.h"
#include "cli/tables/tracing_text.h"
#include "cli/terminal/text_table.h"
#include "traces/format/metrics_io.h"

namespace offprof {
namespace {

constexpr double kFastLink = 1e15;

bool is_simulated(const ViewReport& report) {
  return report.figures.simulated.value_or(false);
}

std::string heading(const std::string& text, const Page& page) {
  return "\n" + page.paint(Tone::kStrong, text) + "\n";
}

std::string known_link_text(const Link& link) {
  return link.d2h.bytes_per_second > 0 && link.h2d.bytes_per_second > 0 ? link_text(link) : "";
}

std::string times_text(const Environment& environment) {
  if (!environment.kernel_times) return kTimesAreModelled;
  return fmt::format("{}; kernel times from {}", kTimesAreModelled, *environment.kernel_times);
}

std::string origin_text(const StepSummary& figures) {
  if (figures.simulated.value_or(false)) return "simulated";
  return figures.times_are_modelled ? "recorded on a virtual GPU" : "measured";
}

/// Returns `loss auto, optimizer adamw, 5 steps after 1 of warm-up, seed 0`; of a script, `by a script, 1
/// step`.
std::string training_text(const RunSettings& settings) {
  const std::string steps = fmt::format("{} step{}", settings.steps, settings.steps == 1 ? "" : "s");
  if (settings.loss == kOfScript) return "by a script, " + steps;
  return fmt::format("loss {}, optimizer {}, {} after {} of warm-up, seed {}", settings.loss,
                     settings.optimizer, steps, settings.warmup, settings.seed);
}

std::string header_text(const ViewReport& report, const Page& page) {
  const StepSummary& figures = report.figures;
  const auto& [model, environment, settings] =
      std::tie(*figures.model, *figures.environment, *figures.settings);
  std::string text = page.paint(Tone::kStrong, report.source);
  text += fmt::format(": {}, offprof {}\n", origin_text(figures), report.tool_version);
  text += labelled("model",
                   fmt::format("{}, {} parameters in {}", model.name, model.parameters,
                               format_bytes(model.parameter_bytes)),
                   page);
  text += labelled("inputs", fmt::format("{}", fmt::join(settings.inputs, "  ")), page);
  text += labelled("training", training_text(settings), page);
  if (settings.parameters) text += labelled("parameters", describe(settings.parameters), page);
  if (!settings.checkpointed.empty())
    text += labelled("checkpoint", fmt::format("{}", fmt::join(settings.checkpointed, "  ")), page);
  if (settings.slices) text += labelled("slices", describe(settings.slices), page);
  text += labelled("device",
                   fmt::format("{}: {}, LibTorch {}", environment.device, environment.device_name,
                               environment.torch_version),
                   page);
  if (figures.times_are_modelled) text += labelled("times", times_text(environment), page);
  text += labelled("link", known_link_text(environment.link), page);
  for (const LabelledLine& line : tracing_lines(figures.tracing, environment))
    text += labelled(line.label, line.text, page, line.tone);
  text += labelled("policy", fmt::format("{}: {}", figures.policy->name, describe(*figures.policy)), page);
  text += labelled("gradients", report.gradients, page);
  for (const std::string& note : report.notes) text += labelled("note", note, page);
  return text;
}

std::string spread_text(const Metrics& metrics, const MetricKey& key) {
  const auto least = metrics.spread.find(std::string(key.name) + "_min");
  const auto most = metrics.spread.find(std::string(key.name) + "_max");
  if (least == metrics.spread.end() || most == metrics.spread.end()) return "";
  return fmt::format("{} to {}", format_metric(key.unit, static_cast<double>(least->second)),
                     format_metric(key.unit, static_cast<double>(most->second)));
}

std::string metrics_text(const ViewReport& report, const Page& page) {
  const char* measured = report.figures.times_are_modelled ? "virtual GPU" : "measured";
  TextTable table({{is_simulated(report) ? "predicted" : measured, Align::kLeft},
                   {"per step", Align::kRight},
                   {"min to max", Align::kLeft}});
  for (const MetricKey& key : metric_keys()) {
    const auto value = key.get(report.figures.metrics);
    if (value)
      table.add_row(
          {metric_text(key.name), format_metric(key.unit, *value), spread_text(report.figures.metrics, key)});
  }
  return "\n" + table.render(page);
}

std::string ops_text(const ViewReport& report, const Page& page) {
  if (report.saved_by_op.empty()) return "";
  Bytes all = 0;
  for (const auto& [op, entry] : report.saved_by_op) all += entry.bytes;
  TextTable table({{"saved by operator", Align::kLeft},
                   {"tensors", Align::kRight},
                   {"bytes", Align::kRight},
                   {"share", Align::kRight}});
  const std::size_t count = report.saved_by_op.size();
  const std::size_t shown = std::min(count, report.ops_shown);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& [op, entry] = report.saved_by_op[i];
    table.add_row(
        {op, std::to_string(entry.tensors), format_bytes(entry.bytes), share_text(entry.bytes, all)});
  }
  const std::string rest =
      shown < count ? fmt::format("  ... and {} more: --top {}\n", count - shown, count) : "";
  return "\n" + table.render(page) + rest;
}

std::string allocator_text(const ViewReport& report, const Page& page) {
  const auto& reserved_peak = report.figures.metrics.device_reserved_peak_bytes;
  if (!report.allocator || !reserved_peak) return "";
  const AllocatorSum sum = sum_up(*report.allocator);
  const std::string& settings = report.allocator->settings;
  return labelled(
      "allocator",
      fmt::format("reserves up to {}; at the start of a step {} in {}, of which {} are free in {}, the "
                  "largest {}; settings: {}",
                  format_bytes(*reserved_peak), format_bytes(sum.reserved),
                  counted(static_cast<std::int64_t>(sum.segments), "segment"), format_bytes(sum.free),
                  counted(static_cast<std::int64_t>(sum.free_blocks), "block"),
                  format_bytes(sum.largest_free_block), settings.empty() ? "default" : settings),
      page);
}

std::string memory_text(const ViewReport& report, const Page& page) {
  const MemoryOverStep& memory = report.memory;
  std::string text = heading("Device memory over the step, replayed from the trace", page);
  text += draw_memory(memory, page);
  text += fmt::format("  peak {}", format_bytes(memory.peak_bytes));
  if (memory.keep_peak_bytes != memory.peak_bytes)
    text += fmt::format("; with nothing offloaded {} ({})", format_bytes(memory.keep_peak_bytes),
                        format_byte_difference(memory.keep_peak_bytes - memory.peak_bytes));
  return text + "\n" + allocator_text(report, page);
}

std::string explanation_text(const ViewReport& report, const Page& page) {
  return heading("Peak and stalls, replayed from the trace", page) + to_text(report.explanation, page);
}

std::string overlap_text(const ViewReport& report, const Page& page) {
  const Metrics& metrics = report.figures.metrics;
  const bool copied = metrics.d2h_bytes.value_or(0) > 0 || metrics.h2d_bytes.value_or(0) > 0;
  if (!copied || !metrics.step_time_ns) return "";
  const Nanoseconds step = *metrics.step_time_ns;
  TextTable table({{is_simulated(report) ? "time of a step" : "time of a step (medians)", Align::kLeft},
                   {"time", Align::kRight},
                   {"share", Align::kRight}});
  const auto row = [&](const std::string& what, const std::optional<Nanoseconds>& time) {
    if (time) table.add_row({what, format_duration(*time), share_text(*time, step)});
  };
  row("compute", metrics.compute_ns);
  row("stall time", metrics.exposed_ns);
  row("copies to host (in parallel)", metrics.d2h_busy_ns);
  row("copies to device (in parallel)", metrics.h2d_busy_ns);
  std::string text = "\n" + table.render(page);
  if (!metrics.overlap_ratio) return text;
  return text +
         fmt::format("  {:.1f}% of the copy time is hidden behind compute\n", 100.0 * *metrics.overlap_ratio);
}

std::string next_text(const ViewReport& report, const Page& page) {
  if (!report.figures.metrics.step_time_ns)  // an imported snapshot, which has no times
    return "\n" + next_line({"report", report.source, "-o", "report.html"});
  const char* timeline =
      report.has_timeline
          ? "Open the timeline: drop the file on https://ui.perfetto.dev, or load it in chrome://tracing"
          : "The file has no timeline to open: it was recorded with --no-timeline.";
  const auto& tracing = report.figures.tracing;
  const bool has_times = !tracing || !tracing->lost_records();
  std::vector<std::string> words = {"tune", report.source};
  if (!has_times) words.emplace_back("--force");
  return "\n" + wrap(timeline, page.width, 0) + "\n" + next_line(words);
}

nlohmann::ordered_json allocator_to_json(const AllocatorState& state) {
  const AllocatorSum sum = sum_up(state);
  return {{"segments", sum.segments},
          {"reserved_bytes", sum.reserved},
          {"free_bytes", sum.free},
          {"free_blocks", sum.free_blocks},
          {"largest_free_block_bytes", sum.largest_free_block}};
}

nlohmann::ordered_json memory_to_json(const MemoryOverStep& memory) {
  auto points = nlohmann::ordered_json::array();
  for (const ChartSample& sample : memory.device_bytes) points.push_back({sample.at, sample.value});
  auto phases = nlohmann::ordered_json::array();
  for (const ChartMark& phase : memory.phases) phases.push_back({{"name", phase.label}, {"at_ns", phase.at}});
  return {{"device_peak_bytes", memory.peak_bytes},
          {"keep_device_peak_bytes", memory.keep_peak_bytes},
          {"end_ns", memory.end_ns},
          {"phases", std::move(phases)},
          {"device_bytes_at_ns", std::move(points)}};
}

}  // namespace

Link usable_link(Link link) {
  for (LinkDirection* direction : {&link.d2h, &link.h2d}) {
    if (direction->bytes_per_second <= 0) direction->bytes_per_second = kFastLink;
  }
  return link;
}

ViewReport make_view_report(const Trace& trace, const std::string& source, std::size_t ops_shown) {
  ViewReport report{
      .source = source, .tool_version = trace.tool_version, .figures = figures_of(trace, source)};
  report.gradients = trace.gradients;
  report.notes = trace.notes;
  report.ledger = trace.ledger;
  const SavedByOp& saved = report.figures.saved_by_op;
  report.saved_by_op.assign(saved.begin(), saved.end());
  std::ranges::stable_sort(report.saved_by_op, std::greater<>(),
                           [](const auto& row) { return row.second.bytes; });
  report.ops_shown = ops_shown;
  const TraceSteps steps(trace);
  const Link link = usable_link(trace.environment.link);
  report.memory = replay_memory(steps, trace.policy, link);
  report.explanation = explain(steps, trace.policy, link);
  report.allocator = trace.program.allocator;
  return report;
}

nlohmann::ordered_json to_json(const ViewReport& report) {
  nlohmann::ordered_json json = {{"trace", report.source}, {"trace_tool_version", report.tool_version}};
  json.update(run_description_to_json(report.figures));
  add_tracing_figures(json, report.figures.tracing);
  json[is_simulated(report) ? "predicted" : "measured"] = metrics_to_json(report.figures.metrics);
  if (!report.gradients.empty()) json["gradients"] = report.gradients;
  if (!report.notes.empty()) json["notes"] = report.notes;
  json["ledger"] = ledger_to_json(report.ledger);
  auto ops = nlohmann::ordered_json::array();
  for (const auto& [op, entry] : report.saved_by_op) {
    ops.push_back({{"op", op}, {"tensors", entry.tensors}, {"bytes", entry.bytes}});
  }
  json["saved_by_op"] = std::move(ops);
  json["replayed_memory"] = memory_to_json(report.memory);
  json["replayed_memory"].update(to_json(report.explanation));
  if (report.allocator) json["allocator_at_begin"] = allocator_to_json(*report.allocator);
  return json;
}

std::string to_text(const ViewReport& report, const Page& page) {
  const std::string ledger = report.ledger.empty() ? "" : "\n" + ledger_table(report.ledger, page);
  return header_text(report, page) + metrics_text(report, page) + ledger + ops_text(report, page) +
         memory_text(report, page) + explanation_text(report, page) + overlap_text(report, page) +
         next_text(report, page);
}

}  // namespace offprof
