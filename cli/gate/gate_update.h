#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/analysis/figures.h"

namespace offprof {

/// File of baselines as the command line names it.
struct BaselinePlace {
  std::string path;
  std::string key{};  ///< empty: the file has one baseline, without a key
};

/// Returns false if the file does not exist, or has several baselines and none of that key.
bool exists(const BaselinePlace& place);

/// Reads a baseline. Throws Error (input) if there is none, with the command that writes it from `trace`.
StepSummary read_baseline(const BaselinePlace& place, const std::string& trace);

/// How `--update` and `--add` write.
enum class BaselineChange { kReplace, kAddRun };

/// Writes baselines into one file. Several need keys; those of other keys stay as they are. Throws Error
/// (input) if the file is no baseline, or if a run to add differs from the others.
std::vector<StepSummary> write_baselines(const std::string& path,
                                         const std::vector<std::pair<std::string, StepSummary>>& by_key,
                                         BaselineChange change);

/// Result of `gate --update` and `gate --add`.
struct UpdateReport {
  std::string baseline;
  std::vector<std::string> keys{};     ///< empty texts: no key
  std::vector<StepSummary> written{};  ///< by key
  bool is_list = false;
};

nlohmann::ordered_json to_json(const UpdateReport& report);
std::string to_text(const UpdateReport& report, const Page& page);

}  // namespace offprof
