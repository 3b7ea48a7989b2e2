#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/ledger.h"
#include "traces/metrics.h"
#include "traces/trace.h"

namespace offprof {

/// The schema of what `gate --update` writes.
inline constexpr std::string_view kBaselineSchema = "offprof.baseline/1";

/// Saved tensors and their bytes, by the operator that saved them.
using SavedByOp = std::map<std::string, LedgerEntry>;

/// The figures of a step and what they were taken of: what `diff` and `gate` compare. A trace has all of it,
/// a report or a baseline what it tells; the rest is unknown.
struct Figures {
  std::string source;  ///< the file's name, as it was given
  Metrics metrics{};
  std::optional<bool> simulated{};
  std::optional<ModelInfo> model{};
  std::optional<Environment> environment{};
  std::optional<RunSettings> settings{};
  std::optional<Policy> policy{};
  std::optional<std::string> allocator_settings{};  ///< of a device with a caching allocator
  SavedByOp saved_by_op{};
  std::optional<Tracing> tracing{};
  bool times_are_modelled = false;  ///< those of the run, or of the run that was simulated
};

SavedByOp saved_by_op(const Program& program);

Figures figures_of(const Trace& trace, const std::string& source);

/// The figures in a trace, a report of `run`, `simulate`, `tune` or `view`, or a baseline, whichever the file
/// is. Throws Error (input): not there, broken, none of these, or a report without figures.
Figures read_figures(const std::string& path);

/// The same from text; `name` stands for it in errors.
Figures parse_figures(const std::string& text, const std::string& name);

/// What was run, and how, as reports and baselines hold it: `simulated`, `model`, `environment`, `settings`,
/// `policy`, `allocator_settings`, `tracing`. What is unknown is left out.
nlohmann::ordered_json run_description_to_json(const Figures& figures);

/// Whether a file's text says that it is a baseline, of whatever version.
bool is_baseline(const std::string& text);

/// A baseline file's text.
std::string format_baseline(const Figures& figures, std::string_view tool_version);

/// One thing that two runs do not have in common, in words for a person.
struct RunDifference {
  std::string what;  ///< `model`, `inputs`, `loss`, `optimizer`, `weights`, `segments`, `shards`, `device`,
                     ///< `machine`, `threads`, `LibTorch`, `kernel times`, `link`, `allocator settings`,
                     ///< `policy`, `source of figures`
  std::string base;
  std::string now;
  bool operator==(const RunDifference&) const = default;
};

/// Every difference in what ran, and how. What either side does not tell is no difference.
std::vector<RunDifference> run_differences(const Figures& base, const Figures& now);

/// The first of the differences that make times of the two runs incomparable (`machine`, `threads`, `kernel
/// times`, `source of figures`); nullptr where there is none.
const RunDifference* time_difference(const std::vector<RunDifference>& differences);

}  // namespace offprof
