#include "cli/commands/diff_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/headline.h"
#include "cli/tables/timeline_diff_text.h"
#include "cli/terminal/text_table.h"
#include "traces/timeline/timeline_reader.h"

namespace offprof {
namespace {

std::string percent_text(const MetricDifference& metric) {
  const auto percent = metric.percent();
  if (!percent || *percent == 0) return "";
  return fmt::format("{:+.1f}%", *percent);
}

TextTable metric_table(const std::vector<MetricDifference>& metrics) {
  TextTable table({{"metric", Align::kLeft},
                   {"base", Align::kRight},
                   {"new", Align::kRight},
                   {"difference", Align::kRight},
                   {"", Align::kRight}});
  for (const MetricDifference& metric : metrics) {
    const auto difference = metric.difference();
    table.add_row({metric_text(metric.key), figure_text(metric.unit, metric.base),
                   figure_text(metric.unit, metric.now),
                   difference ? difference_text(metric.unit, *difference) : "-", percent_text(metric)});
  }
  return table;
}

std::string source_text(const std::string& source, bool times_are_modelled) {
  return times_are_modelled ? fmt::format("{} (times {})\n", source, kTimesAreModelled) : source + "\n";
}

/// Returns a note if times are not comparable. A prediction and its measurement get no note, since users want
/// to compare these two.
std::string times_note(const std::vector<RunDifference>& run) {
  const RunDifference* difference = time_difference(run);
  if (difference == nullptr || difference->what == "source of figures") return "";
  return fmt::format("  Times are not comparable: not the same {}.\n", difference->what);
}

std::string run_text(const std::vector<RunDifference>& run, const Page& page) {
  if (run.empty()) return "";
  TextTable table({{"run property", Align::kLeft}, {"base", Align::kLeft}, {"new", Align::kLeft}});
  for (const RunDifference& difference : run)
    table.add_row({difference.what, difference.base, difference.now});
  return "\n" + table.render(page) + times_note(run);
}

/// Returns a sentence if exactly one side has no steps. If neither has any (two reports), nobody expects a
/// timeline.
std::string no_timeline_text(const std::vector<std::string>& without_steps, const Page& page) {
  if (without_steps.size() != 1) return "";
  const std::string text = fmt::format(
      "Timelines cannot be compared: '{}' has none. It is no trace, or was recorded with --no-timeline.",
      without_steps[0]);
  return "\n  " + wrap(text, page.width, 2) + "\n";
}

std::string ops_text(const DiffReport& report, const Page& page) {
  const auto& ops = report.diff.ops;
  if (ops.empty()) return "";
  TextTable table({{"saved by operator", Align::kLeft},
                   {"base", Align::kRight},
                   {"new", Align::kRight},
                   {"difference", Align::kRight},
                   {"tensors", Align::kRight}});
  const std::size_t shown = std::min(ops.size(), report.ops_shown);
  for (std::size_t i = 0; i < shown; ++i) {
    table.add_row({ops[i].op, format_bytes(ops[i].base.bytes), format_bytes(ops[i].now.bytes),
                   format_byte_difference(ops[i].difference()),
                   fmt::format("{} → {}", ops[i].base.tensors, ops[i].now.tensors)});
  }
  const std::string rest =
      shown < ops.size() ? fmt::format("  ... and {} more: --top {}\n", ops.size() - shown, ops.size()) : "";
  return "\n" + table.render(page) + rest;
}

/// Returns the headline of the two steps, and why their times are not comparable.
std::string verdict_text(const DiffReport& report, const Page& page) {
  HeadlineFigures base, now;
  for (const MetricDifference& metric : report.diff.metrics) {
    if (metric.key == kPeakKey) base.peak_bytes = metric.base, now.peak_bytes = metric.now;
    if (metric.key == kStepTimeKey) base.step_ns = metric.base, now.step_ns = metric.now;
  }
  const std::string verdict = headline(base, now);
  return verdict.empty() ? "" : page.paint(Tone::kStrong, wrap(verdict, page.width, 0)) + "\n";
}

class DiffCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("BASE", base_, "Trace, JSON report or baseline")->required();
    app.add_option("NEW", now_, "Trace, JSON report or baseline to compare with BASE")->required();
    top_option_ = add_count_option(app, "--top", report_.ops_shown, 0, kMostShown,
                                   "Rows to show of each list, and of those that -v shows (default 10)");
    add_output_option(app, output_, "File for the report (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    context.detail("reading " + base_ + " and " + now_);
    report_.diff = compare(read_figures(base_), read_figures(now_));
    compare_timelines(report_, read_timeline(base_), read_timeline(now_));
    report_.lists_times = top_option_->count() > 0;
    context.publish(report_, output_);
    return ExitStatus::kOk;
  }

 private:
  static constexpr std::int64_t kMostShown = 1'000'000;

  std::string base_;
  std::string now_;
  std::string output_ = "-";
  const CLI::Option* top_option_ = nullptr;
  DiffReport report_;
};

}  // namespace

void compare_timelines(DiffReport& report, const std::optional<Timeline>& base,
                       const std::optional<Timeline>& now) {
  if (base && now) report.timeline = compare(*base, *now);
  if (!base || !shows_a_step(*base)) report.without_steps.push_back(report.diff.base_source);
  if (!now || !shows_a_step(*now)) report.without_steps.push_back(report.diff.now_source);
}

nlohmann::ordered_json to_json(const DiffReport& report) {
  auto metrics = nlohmann::ordered_json::array();
  for (const MetricDifference& metric : report.diff.metrics) {
    nlohmann::ordered_json json = {{"key", metric.key},
                                   {"base", figure_to_json(metric.unit, metric.base)},
                                   {"new", figure_to_json(metric.unit, metric.now)},
                                   {"difference", figure_to_json(metric.unit, metric.difference())},
                                   {"percent", nullptr}};
    if (const auto percent = metric.percent()) json["percent"] = *percent;
    metrics.push_back(std::move(json));
  }
  auto run = nlohmann::ordered_json::array();
  for (const RunDifference& difference : report.diff.run) {
    run.push_back({{"what", difference.what}, {"base", difference.base}, {"new", difference.now}});
  }
  nlohmann::ordered_json json = {{"base", report.diff.base_source},
                                 {"new", report.diff.now_source},
                                 {"metrics", std::move(metrics)},
                                 {"run_differences", std::move(run)},
                                 {"saved_by_op_differences", ops_to_json(report.diff.ops)}};
  json["timeline"] = report.timeline ? to_json(*report.timeline) : nlohmann::ordered_json(nullptr);
  if (report.diff.base_times_are_modelled || report.diff.now_times_are_modelled)
    json["times_are_modelled"] = true;
  return json;
}

std::string to_text(const DiffReport& report, const Page& page) {
  std::string text = verdict_text(report, page);
  text += "base: " + source_text(report.diff.base_source, report.diff.base_times_are_modelled);
  text += "new:  " + source_text(report.diff.now_source, report.diff.now_times_are_modelled) + "\n";
  text += metric_table(report.diff.metrics).render(page);
  text += run_text(report.diff.run, page) + ops_text(report, page);
  if (report.timeline) {
    Page with_lists = page;
    with_lists.details = page.details || report.lists_times;
    return text + "\n" + to_text(*report.timeline, report.ops_shown, with_lists);
  }
  return text + no_timeline_text(report.without_steps, page);
}

std::unique_ptr<Subcommand> make_diff_command() {
  return std::make_unique<DiffCommand>();
}

}  // namespace offprof
