#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/save_sites.h"
#include "traces/model/ledger.h"
#include "traces/model/metrics.h"
#include "traces/model/trace.h"

namespace offprof {

/// Schema of the output of `--format json`.
inline constexpr std::string_view kReportSchema = "offprof.report/1";

/// Schema of the file that `gate --update` writes.
inline constexpr std::string_view kBaselineSchema = "offprof.baseline/1";

/// Saved tensors and their bytes, by the operator that saved them.
using SavedByOp = std::map<std::string, LedgerEntry>;

/// Figures of a step, and the model and settings that they belong to. `diff` and `gate` compare two of them.
/// A trace has all members, a report or a baseline only some; the rest is unknown.
struct StepSummary {
  std::string source;  ///< name of the file, as it was given
  Metrics metrics{};
  std::optional<bool> simulated{};
  std::optional<ModelInfo> model{};
  std::optional<Environment> environment{};
  std::optional<RunSettings> settings{};
  std::optional<Policy> policy{};
  std::optional<std::string> allocator_settings{};  ///< only for a device with a caching allocator
  SavedByOp saved_by_op{};
  SavedBySite saved_by_site{};
  SavedBySite in_use_at_peak{};
  std::optional<Tracing> tracing{};
  bool times_are_modelled = false;  ///< times of the run, or of the run that was simulated
  std::vector<Metrics> earlier{};   ///< of a baseline: figures of earlier runs, for the spread of times
};

SavedByOp saved_by_op(const StepProgram& program);

StepSummary figures_of(const Trace& trace, const std::string& source);

/// Reads the figures from a trace, a report of `run`, `simulate`, `tune` or `view`, or a baseline. Throws
/// Error (input) if the file does not exist, is damaged, is of another kind, or is a report without figures.
StepSummary read_figures(const std::string& path);

/// Reads the figures from text; `name` is the name of the text in errors.
StepSummary parse_figures(const std::string& text, const std::string& name);

/// Describes the run as reports and baselines do: `simulated`, `model`, `environment`, `settings`, `policy`,
/// `allocator_settings`, `tracing`. Unknown members are left out.
nlohmann::ordered_json run_description_to_json(const StepSummary& figures);

/// Returns a baseline as a JSON document.
nlohmann::ordered_json baseline_to_json(const StepSummary& figures, std::string_view tool_version);

/// Reads the figures from a document of the given schema, kReportSchema or kBaselineSchema.
StepSummary figures_from_document(const nlohmann::json& document, std::string_view schema,
                                  const std::string& name);

/// A property that differs between two runs, in words for a person.
struct RunDifference {
  std::string what;  ///< `model`, `inputs`, `loss`, `optimizer`, `parameters`, `checkpointed modules`,
                     ///< `slices`, `device`, `machine`, `threads`, `LibTorch`, `kernel times`, `link`,
                     ///< `allocator settings`, `policy`, `source of figures`
  std::string base;
  std::string now;
  bool operator==(const RunDifference&) const = default;
};

/// Returns all differences in the model, the machine and the settings of two runs. A property that is unknown
/// on either side is no difference.
std::vector<RunDifference> run_differences(const StepSummary& base, const StepSummary& now);

/// Returns the first difference that makes times of the two runs incomparable (`machine`, `threads`, `kernel
/// times`, `source of figures`), or nullptr.
const RunDifference* time_difference(const std::vector<RunDifference>& differences);

}  // namespace offprof
