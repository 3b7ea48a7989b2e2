#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <vector>

#include "cli/gate/gate_report.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// GitHub shows at most ten errors of a step.
constexpr std::size_t kMostErrors = 10;

/// Escapes the message of a workflow command, as GitHub's runner unescapes it (actions/runner,
/// src/Runner.Common/ActionCommand.cs).
std::string escaped(const std::string& text, const std::map<char, std::string>& escapes) {
  std::string result;
  for (const char letter : printable(text, true)) {
    const auto escape = escapes.find(letter);
    result += escape == escapes.end() ? std::string(1, letter) : escape->second;
  }
  return result;
}

std::string message(const std::string& text) {
  return escaped(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}});
}

/// Properties also escape the characters that end them.
std::string property(const std::string& text) {
  return escaped(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}});
}

struct Place {
  std::string file;
  std::string line;
};

/// Finds the file of `FILE:LINE` below one of the folders. The path is relative to the working folder, which
/// is the repository in a job. nullopt: there is no such file below the working folder.
std::optional<Place> place_of(const std::string& line, const std::vector<std::string>& roots) {
  namespace fs = std::filesystem;
  const std::size_t colon = line.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::error_code error;
  const fs::path here = fs::current_path(error);
  for (const std::string& root : roots) {
    const fs::path file = fs::path(root) / line.substr(0, colon);
    if (!fs::is_regular_file(file, error)) continue;
    const fs::path relative = fs::absolute(file, error).lexically_normal().lexically_relative(here);
    if (relative.empty() || *relative.begin() == "..") continue;
    return Place{relative.generic_string(), line.substr(colon + 1)};
  }
  return std::nullopt;
}

/// Returns the place that grew the most, of those with a line in a known file.
std::optional<Place> place_of_growth(const GateReport& report) {
  for (const std::vector<SiteDifference>* sites : {&report.sites, &report.peak_sites})
    for (const SiteDifference& difference : *sites) {
      if (difference.difference() <= 0) break;
      if (auto place = place_of(difference.site.line, report.source_roots)) return place;
    }
  return std::nullopt;
}

std::string error_for(const GateReport& report, const Check& check) {
  std::string properties;
  std::string text = sentence_of(check);
  const bool is_memory = check.unit == MetricUnit::kBytes && check.why.empty();
  if (const std::string growth = growth_text(report); is_memory && !growth.empty()) {
    text += "\n" + growth;
    if (const auto place = place_of_growth(report))
      properties = fmt::format("file={},line={},", property(place->file), property(place->line));
  }
  return fmt::format("::error {}title={}::{}\n", properties,
                     property(fmt::format("{}: {}", title_of(report), check.key)), message(text));
}

}  // namespace

std::string to_github(const GateSuite& suite) {
  std::vector<std::string> errors;
  std::size_t checks = 0;
  for (const GateReport& gate : suite.gates) {
    checks += gate.verdict.checks.size();
    for (const Check& check : gate.verdict.checks)
      if (!check.ok) errors.push_back(error_for(gate, check));
  }
  if (errors.empty()) return fmt::format("::notice title=offprof gate::passed, {} checks\n", checks);
  if (errors.size() > kMostErrors) {
    const std::size_t more = errors.size() - kMostErrors + 1;
    errors.resize(kMostErrors - 1);
    errors.push_back(fmt::format("::error title=offprof gate::{} more checks failed\n", more));
  }
  return fmt::format("{}", fmt::join(errors, ""));
}

}  // namespace offprof
