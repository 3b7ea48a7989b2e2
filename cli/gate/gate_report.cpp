#include "cli/gate/gate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

constexpr std::size_t kOpsShown = 3;
constexpr std::size_t kSitesShown = 10;

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

nlohmann::ordered_json to_json(const std::vector<SiteDifference>& sites) {
  auto json = nlohmann::ordered_json::array();
  for (const SiteDifference& difference : sites) {
    const auto side = [](const LedgerEntry& entry) -> nlohmann::ordered_json {
      return {{"tensors", entry.tensors}, {"bytes", entry.bytes}};
    };
    const auto known = [](const std::string& text) {
      return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
    };
    json.push_back({{"op", difference.site.op},
                    {"module", known(difference.site.module)},
                    {"line", known(difference.site.line)},
                    {"baseline", side(difference.base)},
                    {"now", side(difference.now)}});
  }
  return json;
}

std::string verdict_cell(const Check& check) {
  if (check.ok) return "ok";
  return check.why.empty() ? "FAILED" : "FAILED: " + check.why;
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
                   {verdict_cell(check), check.ok ? Tone::kGood : Tone::kBad}});
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

/// Returns the first figure that failed: `; device_peak_bytes 1.50 GiB, +512 MiB (+50.0%)`, or with its limit
/// if it has not changed: `; device_peak_bytes 9.00 GiB, limit <=8GiB`.
std::string first_failure_text(const GateResult& verdict) {
  const auto failed =
      std::ranges::find_if(verdict.checks, [](const Check& check) { return !check.ok && check.unit; });
  if (failed == verdict.checks.end()) return "";
  const bool has_changed = failed->baseline && failed->value && *failed->baseline != *failed->value;
  return fmt::format("; {} {}, {}", failed->key, figure_text(*failed->unit, failed->value),
                     has_changed ? change_text(*failed) : "limit " + failed->limit);
}

std::string checks_text(std::size_t checks) {
  return fmt::format("{} check{}", checks, checks == 1 ? "" : "s");
}

/// Returns `gate passed: 9 checks`, or how many of them failed, and one of them.
std::string verdict_text(const GateResult& verdict, const Page& page) {
  if (verdict.ok)
    return page.paint(Tone::kGood, "gate passed") + ": " + checks_text(verdict.checks.size()) + "\n";
  return page.paint(Tone::kBad, "gate failed") + fmt::format(": {} of {}{}\n", failures_of(verdict),
                                                             checks_text(verdict.checks.size()),
                                                             first_failure_text(verdict));
}

/// Returns a table of places, with at most `most` rows.
std::string site_table(const std::vector<SiteDifference>& sites, std::size_t most, const Page& page) {
  TextTable table({{"change", Align::kRight},
                   {"tensors", Align::kRight},
                   {"operator", Align::kLeft},
                   {"module", Align::kLeft},
                   {"line", Align::kLeft}});
  for (const SiteDifference& difference : std::span(sites).first(std::min(sites.size(), most)))
    table.add_row({format_byte_difference(difference.difference()),
                   fmt::format("{} to {}", difference.base.tensors, difference.now.tensors),
                   difference.site.op, difference.site.module, difference.site.line});
  std::string text = table.render(page);
  if (sites.size() > most) text += fmt::format("  {} more: -v shows them\n", sites.size() - most);
  return text;
}

/// Returns the differences of operators as those of places that are not known.
std::vector<SiteDifference> sites_of(const std::vector<OpDifference>& ops) {
  std::vector<SiteDifference> sites;
  for (const OpDifference& op : ops)
    sites.push_back({{.op = op.op, .module = "-", .line = "-"}, op.base, op.now});
  return sites;
}

/// Returns the tables of `--explain`.
std::string explanation_text(const GateReport& report, const Page& page) {
  std::string text;
  const std::size_t most = page.details ? std::numeric_limits<std::size_t>::max() : kSitesShown;
  if (!report.ops.empty() || !report.sites.empty())
    text += "\nSaved for backward, by operator, module and line:\n\n" +
            site_table(report.sites.empty() ? sites_of(report.ops) : report.sites, most, page);
  if (!report.ops.empty() && report.sites.empty())
    text += "  The baseline does not list modules and lines; --update adds them.\n";
  if (!report.peak_sites.empty())
    text += fmt::format("\n{}:\n\n{}",
                        "In use at the peak with nothing offloaded, by the place that saved or allocated it",
                        site_table(report.peak_sites, most, page));
  if (text.empty())
    text =
        "\nThe tensors saved for backward and in use at the peak are the same, or a side does not list "
        "them.\n";
  if (report.resident_change.value_or(0) != 0)
    text += wrap(fmt::format("Older than the step (parameters, optimizer state, inputs): {}",
                             format_byte_difference(*report.resident_change)),
                 page.width, 0) +
            "\n";
  return text + "\n";
}

std::string failure_text(const GateReport& report, const Page& page) {
  std::string text;
  if (!report.ops.empty() && !report.explains)
    text += "Saved for backward: " + wrap(ops_text(report.ops), page.width, 20) + "\n";
  if (report.baseline.empty()) return text;
  const std::string baseline = shell_word(report.baseline), trace = shell_word(report.trace);
  const std::string key = report.key.empty() ? "" : " --key " + shell_word(report.key);
  if (key.empty()) text += fmt::format("See what changed:   offprof diff {} {}\n", baseline, trace);
  if (!report.explains)
    text +=
        fmt::format("By module and line: offprof gate {} --explain --baseline {}{}\n", trace, baseline, key);
  text += fmt::format("If intended:        offprof gate {} --update --baseline {}{}\n", trace, baseline, key);
  return text;
}

/// Returns the checks and notes of a gate, without its verdict.
std::string details_text(const GateReport& report, const Page& page) {
  std::string text = differences_text(report.verdict.checks, page);
  text += check_table(report.verdict.checks).render(page);
  for (const std::string& note : report.verdict.notes) text += "  note: " + wrap(note, page.width, 8) + "\n";
  if (report.explains) text += explanation_text(report, page);
  return text;
}

std::string compared_text(const GateReport& report) {
  if (report.baseline.empty()) return report.trace + " compared with absolute limits";
  return fmt::format("{} compared with {}{}", report.trace, report.baseline,
                     report.key.empty() ? "" : ", " + report.key);
}

}  // namespace

void explain(GateReport& report, const StepSummary& base, const StepSummary& now) {
  report.ops = op_differences(base, now);
  report.sites = site_differences(base.saved_by_site, now.saved_by_site);
  report.peak_sites = site_differences(base.in_use_at_peak, now.in_use_at_peak);
  if (base.metrics.device_resident_bytes && now.metrics.device_resident_bytes)
    report.resident_change = *now.metrics.device_resident_bytes - *base.metrics.device_resident_bytes;
}

bool GateSuite::ok() const {
  return std::ranges::all_of(gates, [](const GateReport& gate) { return gate.verdict.ok; });
}

std::string verdict_word(const Check& check) {
  if (check.ok) return "ok";
  return check.why.empty() ? "failed" : "failed: " + check.why;
}

std::string change_text(const Check& check) {
  if (!check.unit || !check.baseline || !check.value) return "";
  return difference_text(*check.unit, *check.value - *check.baseline) +
         percent_suffix(*check.baseline, *check.value);
}

std::string sentence_of(const Check& check) {
  if (!check.unit)
    return fmt::format("not the same {}: baseline {}; now {}", check.key, check.baseline_text,
                       check.value_text);
  std::string text = fmt::format("{} is {}", check.key, figure_text(*check.unit, check.value));
  if (check.baseline) text += ", baseline " + figure_text(*check.unit, check.baseline);
  if (const std::string change = change_text(check); !change.empty()) text += ", change " + change;
  text += ", limit " + check.limit;
  return check.why.empty() ? text : text + ": " + check.why;
}

std::string title_of(const GateReport& report) {
  return "offprof gate " + (report.key.empty() ? report.trace : report.key);
}

std::size_t failures_of(const GateResult& verdict) {
  return static_cast<std::size_t>(std::ranges::count(verdict.checks, false, &Check::ok));
}

std::string growth_text(const GateReport& report) {
  for (const auto& [what, sites] : {std::pair("Saved for backward", &report.sites),
                                    std::pair("In use at the peak", &report.peak_sites)}) {
    const auto largest = std::ranges::max_element(*sites, {}, &SiteDifference::difference);
    if (largest != sites->end() && largest->difference() > 0)
      return fmt::format("{}: {} {}", what, format_byte_difference(largest->difference()),
                         describe(largest->site));
  }
  return "";
}

std::string describe(const SaveSite& site) {
  std::string text = site.op;
  if (!site.module.empty()) text += " in " + site.module;
  if (!site.line.empty()) text += ", " + site.line;
  return text;
}

nlohmann::ordered_json to_json(const GateReport& report) {
  auto checks = nlohmann::ordered_json::array();
  for (const Check& check : report.verdict.checks) checks.push_back(to_json(check));
  nlohmann::ordered_json json;
  if (!report.key.empty()) json["key"] = report.key;
  json["trace"] = report.trace;
  json["baseline"] =
      report.baseline.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(report.baseline);
  json["checks"] = std::move(checks);
  json["notes"] = report.verdict.notes;
  json["saved_by_op_differences"] = ops_to_json(report.ops);
  json["saved_by_site_differences"] = to_json(report.sites);
  json["in_use_at_peak_differences"] = to_json(report.peak_sites);
  if (report.resident_change) json["resident_bytes_difference"] = *report.resident_change;
  json["ok"] = report.verdict.ok;
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  return json;
}

std::string to_text(const GateReport& report, const Page& page) {
  std::string text =
      verdict_text(report.verdict, page) + compared_text(report) + "\n\n" + details_text(report, page);
  text += "\n" + times_line(report.times_are_modelled, page);
  return report.verdict.ok ? text : text + failure_text(report, page);
}

nlohmann::ordered_json to_json(const GateSuite& suite) {
  if (!suite.is_list) return to_json(suite.gates.front());
  auto gates = nlohmann::ordered_json::array();
  for (const GateReport& gate : suite.gates) gates.push_back(to_json(gate));
  return {{"gates", std::move(gates)}, {"ok", suite.ok()}};
}

std::string to_text(const GateSuite& suite, const Page& page) {
  if (!suite.is_list) return to_text(suite.gates.front(), page);
  const auto failed =
      std::ranges::count_if(suite.gates, [](const GateReport& gate) { return !gate.verdict.ok; });
  std::string text =
      failed == 0
          ? page.paint(Tone::kGood, "gates passed") + fmt::format(": {}\n", suite.gates.size())
          : page.paint(Tone::kBad, "gates failed") + fmt::format(": {} of {}\n", failed, suite.gates.size());
  bool has_modelled_times = false;
  for (const GateReport& gate : suite.gates) {
    text += fmt::format("\n{}: {}", page.paint(Tone::kStrong, gate.key), verdict_text(gate.verdict, page));
    if (!gate.verdict.ok || page.details || gate.explains) text += "\n" + details_text(gate, page);
    if (!gate.verdict.ok && !gate.ops.empty() && !gate.explains)
      text += "  Saved for backward: " + wrap(ops_text(gate.ops), page.width, 22) + "\n";
    has_modelled_times |= gate.times_are_modelled;
  }
  text += "\n" + times_line(has_modelled_times, page);
  if (failed == 0) return text;
  const std::string config = suite.config.empty() ? "" : " --config " + shell_word(suite.config);
  for (const GateReport& gate : suite.gates)
    if (!gate.verdict.ok && !gate.explains)
      text += fmt::format("By module and line: offprof gate --explain{} --key {}\n", config,
                          shell_word(gate.key));
  for (const GateReport& gate : suite.gates)
    if (!gate.verdict.ok)
      text +=
          fmt::format("If intended:        offprof gate --update{} --key {}\n", config, shell_word(gate.key));
  return text;
}

}  // namespace offprof
