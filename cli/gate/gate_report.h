#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/analysis/diff.h"
#include "traces/analysis/gate.h"
#include "traces/analysis/save_sites.h"

namespace offprof {

/// Verdict on one trace.
struct GateReport {
  std::string trace;
  std::string baseline;  ///< empty: all limits are absolute
  GateResult verdict;
  /// Differences between the tensors that operators saved, largest first. Filled only if the gate failed or
  /// explains.
  std::vector<OpDifference> ops{};
  bool times_are_modelled = false;  ///< true if the trace's times are modelled
  std::string key{};                ///< of the baseline in its file; empty: the file has only one
  /// Differences between the tensors that places saved, the largest growth first. Filled like `ops`.
  std::vector<SiteDifference> sites{};
  std::optional<Bytes> resident_change{};  ///< of the memory that is older than the step
  /// Differences between what is in use at the peak. Filled like `ops`.
  std::vector<SiteDifference> peak_sites{};
  bool explains = false;  ///< `--explain`
  /// Folders in which source files are looked for, relative to the working folder.
  std::vector<std::string> source_roots{};
};

/// Fills `ops`, `sites`, `peak_sites` and `resident_change`.
void explain(GateReport& report, const StepSummary& base, const StepSummary& now);

/// Verdicts on the traces of one call of `gate`.
struct GateSuite {
  std::vector<GateReport> gates;  ///< at least one
  bool is_list = false;           ///< the gates are those of a configuration file, even if there is only one
  std::string config{};           ///< path of the file, if it was named
  bool ok() const;
};

nlohmann::ordered_json to_json(const GateReport& report);
std::string to_text(const GateReport& report, const Page& page);
nlohmann::ordered_json to_json(const GateSuite& suite);
std::string to_text(const GateSuite& suite, const Page& page);

/// Returns a page section in GitHub's Markdown: the verdict, a table for each gate, and what makes the
/// difference.
std::string to_markdown(const GateSuite& suite);

/// Returns workflow commands of GitHub, which annotate the file and the line that save the most of what grew:
/// an error for each failed check, or a notice if all passed. GitHub shows at most ten errors of a step; the
/// last one counts those that are left out.
std::string to_github(const GateSuite& suite);

/// Returns JUnit XML: a test suite for each gate, a test case for each check.
std::string to_junit(const GateSuite& suite);

/// Returns `failed`, and why if there is a reason, or `ok`.
std::string verdict_word(const Check& check);
/// Returns ` +54.4 MiB (+235.2%)`, or an empty text if a side is missing.
std::string change_text(const Check& check);
/// Returns one sentence about a check: `device_peak_bytes is 77.6 MiB, baseline 23.1 MiB (+235.2%), limit
/// <=+0%`.
std::string sentence_of(const Check& check);
/// Returns `offprof gate`, and the key or the trace of the report.
std::string title_of(const GateReport& report);

/// Returns the number of checks that failed.
std::size_t failures_of(const GateResult& verdict);

/// Returns the place whose tensors grew the most: `Saved for backward: +1.00 GiB aten::gelu in layers.*.mlp,
/// model.py:12`, or else that of what is in use at the peak; empty: none is known.
std::string growth_text(const GateReport& report);
/// Returns `aten::gelu in layers.*.mlp, model.py:12`.
std::string describe(const SaveSite& site);

}  // namespace offprof
