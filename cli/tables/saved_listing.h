#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/model/ledger.h"
#include "traces/model/trace.h"

namespace offprof {

/// The property by which the listing groups saved tensors.
enum class SavedBy { kOp, kModule, kLine, kDtype, kPlacement };

/// One saved tensor of a trace's step.
struct SavedLine {
  std::int32_t number = 0;  ///< position in the step's order of saved tensors, from 0; rules use it
  std::string op;           ///< the operator that saved the tensor
  std::string module;       ///< the module that saved it; empty: unknown, or the model itself
  std::string line;         ///< the source line that saved it, `FILE:LINE`; empty: unknown
  std::string dtype;
  std::vector<std::int64_t> sizes;
  Bytes bytes = 0;                       ///< number of elements times element size
  std::optional<Bytes> storage_bytes{};  ///< nullopt: the tensor has no storage on the device
  std::int32_t storage = -1;             ///< index in Program::storages; -1: no storage on the device
  std::uint32_t version = 0;             ///< same storage and version means same content
  std::string placement{};               ///< `device`, `quantize:uint8+host`, ...
  PlacementReason reason = PlacementReason::kNothingOffloaded;
};

/// The saved tensors of one operator, module, source line, type or placement.
struct SavedGroup {
  std::string key;
  LedgerEntry saved;
};

/// Output of `offprof view --saved`.
struct SavedListing {
  std::string source;
  std::string policy;                       ///< the policy that placed the tensors
  std::optional<SavedBy> by{};              ///< nullopt: one line per tensor
  std::vector<SavedLine> lines{};           ///< in the order in which autograd saves them
  std::vector<SavedGroup> groups{};         ///< most bytes first; empty without `by`
  std::optional<std::size_t> most_shown{};  ///< number of largest tensors shown in text; nullopt: all
};

/// Lists all saved tensors of the trace's step with their placements; a replay under the trace's policy gives
/// the placements.
SavedListing list_saved(const Trace& trace, const std::string& source, std::optional<SavedBy> by,
                        std::optional<std::size_t> most_shown);
nlohmann::ordered_json to_json(const SavedListing& listing);
std::string to_text(const SavedListing& listing, const Page& page);

}  // namespace offprof
