#include "cli/commands/gate_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/base/version.h"
#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr std::size_t kOpsShown = 3;

/// Result of `gate --update`.
struct UpdateReport {
  std::string trace;
  std::string baseline;
  Metrics metrics;
  bool times_are_modelled = false;
};

nlohmann::ordered_json to_json(const UpdateReport& report) {
  nlohmann::ordered_json json = {{"updated", true},
                                 {"trace", report.trace},
                                 {"baseline", report.baseline},
                                 {"metrics", metrics_to_json(report.metrics)}};
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  return json;
}

std::string to_text(const UpdateReport& report, const Page& page) {
  TextTable table({{"metric", Align::kLeft}, {"baseline", Align::kRight}});
  for (const MetricKey& key : metric_keys()) {
    if (const auto value = key.get(report.metrics)) {
      table.add_row({std::string(key.name), format_metric(key.unit, *value)});
    }
  }
  return fmt::format("{} now contains the metrics of {}:\n\n{}{}{}", report.baseline, report.trace,
                     table.render(page), report.times_are_modelled ? "\n" : "",
                     times_line(report.times_are_modelled, page));
}

nlohmann::ordered_json to_json(const Check& check) {
  const auto value = [&check](const std::optional<double>& number,
                              const std::string& text) -> nlohmann::ordered_json {
    if (!check.unit) return text;
    return figure_to_json(*check.unit, number);
  };
  nlohmann::ordered_json json = {{"key", check.key},
                                 {"baseline", value(check.baseline, check.baseline_text)},
                                 {"value", value(check.value, check.value_text)},
                                 {"limit", check.limit}};
  if (check.bound) json["bound"] = figure_to_json(*check.unit, check.bound);
  json["ok"] = check.ok;
  if (!check.why.empty()) json["why"] = check.why;
  return json;
}

std::string verdict_word(const Check& check) {
  if (check.ok) return "ok";
  return check.why.empty() ? "FAILED" : "FAILED: " + check.why;
}

std::string change_text(const Check& check) {
  if (!check.unit || !check.baseline || !check.value) return "";
  return difference_text(*check.unit, *check.value - *check.baseline) +
         percent_suffix(*check.baseline, *check.value);
}

TextTable check_table(const std::vector<Check>& checks) {
  TextTable table({{"metric", Align::kLeft},
                   {"baseline", Align::kRight},
                   {"now", Align::kRight},
                   {"change", Align::kRight},
                   {"limit", Align::kLeft},
                   {"", Align::kLeft}});
  for (const Check& check : checks) {
    if (!check.unit) continue;
    table.add_row({check.key,
                   figure_text(*check.unit, check.baseline),
                   figure_text(*check.unit, check.value),
                   change_text(check),
                   check.limit,
                   {verdict_word(check), check.ok ? Tone::kGood : Tone::kBad}});
  }
  return table;
}

/// Returns text about the checks of run properties that must be equal but differ.
std::string differences_text(const std::vector<Check>& checks, const Page& page) {
  std::string text;
  for (const Check& check : checks) {
    if (check.unit) continue;
    text += "  " + page.paint(Tone::kBad, "FAILED") + ": not the same " + check.key + "\n";
    text += "    baseline: " + wrap(check.baseline_text, page.width, 14) + "\n";
    text += "    now:      " + wrap(check.value_text, page.width, 14) + "\n";
  }
  return text.empty() ? text : text + "  To compare anyway: --allow-different\n\n";
}

std::string ops_text(const std::vector<OpDifference>& ops) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ops.size(), kOpsShown); ++i) {
    text +=
        fmt::format("{}{} {}", i == 0 ? "" : ", ", format_byte_difference(ops[i].difference()), ops[i].op);
  }
  return text;
}

/// Returns `gate passed: 9 checks`, or how many of them failed.
std::string verdict_text(const GateResult& verdict, const Page& page) {
  if (verdict.ok)
    return page.paint(Tone::kGood, "gate passed") + fmt::format(": {} checks\n", verdict.checks.size());
  const auto failed = std::ranges::count(verdict.checks, false, &Check::ok);
  return page.paint(Tone::kBad, "gate failed") +
         fmt::format(": {} of {} checks\n", failed, verdict.checks.size());
}

std::string failure_text(const GateReport& report, const Page& page) {
  std::string text;
  if (!report.ops.empty()) text += "Saved for backward: " + wrap(ops_text(report.ops), page.width, 20) + "\n";
  const std::string baseline = shell_word(report.baseline), trace = shell_word(report.trace);
  text += fmt::format("See what changed:   offprof diff {} {}\n", baseline, trace);
  text += fmt::format("If intended:        offprof gate {} --update --baseline {}\n", trace, baseline);
  return text;
}

class GateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    source_.add_to(app, "Trace to check, or a JSON report of run or simulate");
    app.add_option("--baseline", baseline_,
                   "Baseline to compare with: a file written by --update, a trace or a JSON report")
        ->type_name("FILE")
        ->required();
    app.add_option("--limit", limits_, limit_help())->type_name("EXPR")->allow_extra_args(false);
    app.add_flag("--update", update_, "Write the metrics of the trace to the baseline; check nothing");
    app.add_flag("--allow-different", allow_different_,
                 "Compare even if the model, inputs, loss, optimizer or device differ");
    app.add_flag("--force", force_, "Check times even if the tracer lost GPU activity");
    add_output_option(app, output_, "File for the report (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    GateOptions options{.limits = {}, .allow_different = allow_different_, .allow_lost_records = force_};
    for (const std::string& text : limits_) {
      read_for_option("--limit", [&] { options.limits.push_back(parse_limit(text)); });
    }
    trace_ = source_.path();
    context.detail("reading " + trace_);
    const StepSummary now = read_figures(trace_);
    if (update_) return update(now, context);
    if (!std::filesystem::exists(baseline_)) throw no_baseline();
    context.detail("reading " + baseline_);
    const StepSummary base = read_figures(baseline_);
    GateReport report{trace_, baseline_, check_gate(base, now, options), {}, now.times_are_modelled};
    if (!report.verdict.ok) report.ops = op_differences(base, now);
    context.publish(report, output_);
    return report.verdict.ok ? ExitStatus::kOk : ExitStatus::kCheckFailed;
  }

 private:
  static std::string limit_help() {
    std::string text =
        "Limit KEY<=BOUND or KEY>=BOUND, repeatable. BOUND is relative to the baseline (+10%, +64MiB) or "
        "absolute (8GiB, 20ms). Replaces the default limits:";
    for (const Limit& limit : default_limits()) text += fmt::format(" {}{}", limit.key, limit.text);
    return text;
  }

  ExitStatus update(const StepSummary& now, Context& context) {
    refuse_to_overwrite_others();
    write_file(baseline_, format_baseline(now, program_version()));
    context.publish(UpdateReport{trace_, baseline_, now.metrics, now.times_are_modelled}, output_);
    return ExitStatus::kOk;
  }

  /// Throws if --baseline names a file that is no baseline. It may be a trace to compare with, which --update
  /// would overwrite.
  void refuse_to_overwrite_others() const {
    if (!std::filesystem::is_regular_file(baseline_) || is_baseline(read_file(baseline_))) return;
    throw input_error(
        fmt::format("{} exists and is not a baseline: --update does not overwrite it", baseline_),
        "Name another file, or remove this one first.");
  }

  Error no_baseline() const {
    return input_error(fmt::format("there is no baseline {}", baseline_),
                       fmt::format("Create it: offprof gate {} --update --baseline {}", shell_word(trace_),
                                   shell_word(baseline_)));
  }

  TraceArgument source_;
  std::string trace_;
  std::string baseline_;
  std::vector<std::string> limits_;
  bool update_ = false;
  bool allow_different_ = false;
  bool force_ = false;
  std::string output_ = "-";
};

}  // namespace

nlohmann::ordered_json to_json(const GateReport& report) {
  auto checks = nlohmann::ordered_json::array();
  for (const Check& check : report.verdict.checks) checks.push_back(to_json(check));
  nlohmann::ordered_json json = {{"trace", report.trace},
                                 {"baseline", report.baseline},
                                 {"checks", std::move(checks)},
                                 {"notes", report.verdict.notes},
                                 {"saved_by_op_differences", ops_to_json(report.ops)},
                                 {"ok", report.verdict.ok}};
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  return json;
}

std::string to_text(const GateReport& report, const Page& page) {
  std::string text = verdict_text(report.verdict, page);
  text += fmt::format("{} compared with {}\n\n", report.trace, report.baseline);
  text += differences_text(report.verdict.checks, page);
  text += check_table(report.verdict.checks).render(page);
  for (const std::string& note : report.verdict.notes) text += "  note: " + wrap(note, page.width, 8) + "\n";
  text += "\n" + times_line(report.times_are_modelled, page);
  return report.verdict.ok ? text : text + failure_text(report, page);
}

std::unique_ptr<Subcommand> make_gate_command() {
  return std::make_unique<GateCommand>();
}

}  // namespace offprof
