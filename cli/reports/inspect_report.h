#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/analysis/figures.h"
#include "traces/format/policy_io.h"
#include "traces/model/trace.h"

namespace offprof {

/// Kind of a file that `offprof inspect` describes.
enum class InspectedKind { kModel, kCheckpoint, kTrace, kPolicy, kBaseline, kReport };

/// One tensor of a file.
struct ListedTensor {
  std::string name;  ///< of a saved tensor: its number in the step, and the operator that saved it
  std::string dtype;
  std::vector<std::int64_t> sizes;
  Bytes bytes = 0;
};

/// Output of `offprof inspect`.
struct InspectReport {
  std::string file;
  InspectedKind kind = InspectedKind::kCheckpoint;
  /// Sorted by name; the saved tensors of a trace are in the order in which autograd saves them. nullopt: the
  /// file has no tensors of its own.
  std::optional<std::vector<ListedTensor>> tensors{};
  std::optional<StepSummary> summary{};  ///< the run that a trace, a policy, a baseline or a report describes
  std::string made_for{};                ///< of a policy: fingerprint of the run that it was tuned for
};

/// Lists the saved tensors of a trace's step.
InspectReport inspect_trace(const Trace& trace, const std::string& file);
/// Describes a policy and the figures that `tune` predicted for it.
InspectReport inspect_policy(const PolicyFile& policy, const std::string& file);

nlohmann::ordered_json to_json(const InspectReport& report);
std::string to_text(const InspectReport& report, const Page& page);

}  // namespace offprof
