#include <fmt/format.h>

#include <algorithm>

#include "cli/gate/gate_report.h"
#include "cli/tables/figure_text.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

constexpr std::size_t kSitesInMarkdown = 20;

/// Escapes text for a cell of a table. GitHub shows Markdown and HTML in cells.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char letter : printable(text)) {
    if (std::string_view(R"(\`*_|<>[]~#&@)").find(letter) != std::string_view::npos) escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string bold_if(bool bold, const std::string& text) {
  return bold ? "**" + text + "**" : text;
}

std::string check_rows(const GateReport& report) {
  std::string text =
      "| metric | baseline | now | change | limit | |\n| --- | ---: | ---: | ---: | --- | --- |\n";
  for (const Check& check : report.verdict.checks) {
    const auto value = [&](const std::optional<double>& number, const std::string& property) {
      return cell(check.unit ? figure_text(*check.unit, number) : property);
    };
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell(check.key),
                        value(check.baseline, check.baseline_text), value(check.value, check.value_text),
                        cell(change_text(check)), cell(check.limit),
                        bold_if(!check.ok, cell(verdict_word(check))));
  }
  return text;
}

std::string site_rows(const std::string& title, const std::vector<SiteDifference>& sites) {
  if (sites.empty()) return "";
  std::string text = fmt::format(
      "\n{}:\n\n| change | tensors | operator | module | line |\n| ---: | ---: | --- | --- | --- |\n", title);
  for (std::size_t i = 0; i < std::min(sites.size(), kSitesInMarkdown); ++i) {
    const SiteDifference& difference = sites[i];
    text += fmt::format("| {} | {} to {} | {} | {} | {} |\n",
                        cell(format_byte_difference(difference.difference())), difference.base.tensors,
                        difference.now.tensors, cell(difference.site.op), cell(difference.site.module),
                        cell(difference.site.line));
  }
  if (sites.size() > kSitesInMarkdown)
    text += fmt::format("\n{} more places.\n", sites.size() - kSitesInMarkdown);
  return text;
}

std::string section(const GateReport& report) {
  const std::string verdict =
      report.verdict.ok
          ? fmt::format("passed, {} checks", report.verdict.checks.size())
          : fmt::format("failed, {} of {} checks", failures_of(report.verdict), report.verdict.checks.size());
  std::string text = fmt::format("### {}: {}\n\n", cell(title_of(report)), verdict) + check_rows(report);
  for (const std::string& note : report.verdict.notes) text += "\n- " + cell(note);
  if (!report.verdict.notes.empty()) text += "\n";
  if (!report.verdict.ok || report.explains)
    text +=
        site_rows("Saved for backward", report.sites) + site_rows("In use at the peak", report.peak_sites);
  if (report.times_are_modelled) text += fmt::format("\nTimes are {}.\n", kTimesAreModelled);
  return text + "\n";
}

}  // namespace

std::string to_markdown(const GateSuite& suite) {
  std::string text;
  for (const GateReport& gate : suite.gates) text += section(gate);
  return text;
}

}  // namespace offprof
