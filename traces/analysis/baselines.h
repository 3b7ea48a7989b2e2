#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traces/analysis/figures.h"

namespace offprof {

/// Schema of a file with several baselines.
inline constexpr std::string_view kBaselinesSchema = "offprof.baselines/1";

/// Maximum number of earlier runs that a baseline keeps.
inline constexpr std::size_t kMostEarlierRuns = 50;

/// Formats the text of a file with one baseline.
std::string format_baseline(const StepSummary& figures, std::string_view tool_version);

/// Returns true if `text` is a file with baselines, of any version.
bool is_baseline(const std::string& text);

/// Returns `now` as the baseline that follows `old`: the figures of `old` are among the earlier ones, of
/// which the newest kMostEarlierRuns stay. Throws Error (input) if the runs are not of the same model,
/// machine, settings and policy.
StepSummary add_run(const StepSummary& old, StepSummary now);

/// Several baselines in one file, each with a key, such as `llama/virtual:h100-80gb`.
class BaselineFile {
 public:
  BaselineFile() = default;
  /// Reads a file. Throws Error (input) if it has another schema, is damaged, or has one baseline without a
  /// key.
  explicit BaselineFile(const std::string& path);

  bool has(const std::string& key) const { return documents_.contains(key); }
  std::vector<std::string> keys() const;
  /// Returns the baseline of that key. Throws Error (input) that lists the keys if there is none.
  StepSummary at(const std::string& key) const;
  void set(const std::string& key, const StepSummary& figures, std::string_view tool_version);
  /// Returns the text of the file. Baselines that were read and not set are the same as before.
  std::string format() const;

 private:
  std::string path_;
  std::map<std::string, nlohmann::ordered_json> documents_;
};

/// Returns true if the file at `path` has several baselines.
bool has_baseline_keys(const std::string& path);

}  // namespace offprof
