#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/other_engines/policy_use.h"
#include "traces/format/policy_io.h"
#include "traces/model/trace.h"

namespace offprof {

/// Policy to be exported, with the step that it is meant for. The references must outlive the request.
struct ExportRequest {
  const std::string& policy_name;  ///< preset or path of the policy file, as the user gave it
  const PolicyFile& file;
  const Trace& trace;
  const PolicyUse& use;  ///< of the policy on the trace's step
};

/// Settings of another engine that are nearest to a policy.
struct EngineExport {
  std::string snippet;              ///< text to paste, with a line break at its end
  nlohmann::ordered_json settings;  ///< the settings by the engine's own names, in its own units
  /// Policy whose simulation gives the figures of the engine with these settings, because its scheduler has
  /// the engine's rules; nullopt: the engine's rules are not modelled.
  std::optional<Policy> simulated{};
  std::string no_figures{};  ///< one sentence: why there are no figures; empty if `simulated` is set
  /// One sentence for each difference between the policy and the settings.
  std::vector<std::string> differences{};
};

/// Engine that policies can be exported to.
struct ExportTarget {
  std::string_view name;      ///< value of `--to`
  std::string_view title;     ///< name for people
  std::string_view language;  ///< of the snippet: `Python`, `JSON`, `flags`
  /// Throws Error (input) if the engine can express nothing of the policy.
  EngineExport (*make)(const ExportRequest& request);
  bool can_be_recorded = false;  ///< `offprof run --apply` runs a script with the snippet
};

/// Returns all targets, in the order in which texts list them. To add one, write a `make` function, declare
/// it in export_targets.h, and add a line to the table in engine_export.cpp.
std::span<const ExportTarget> export_targets();

/// Returns one sentence for each part of a policy that the engine `title` lacks, beside stash, threshold,
/// plan and rules, which each export treats itself.
std::vector<std::string> missing_features(std::string_view title, const PolicyFile& file);

}  // namespace offprof
