#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "traces/ledger.h"
#include "traces/trace.h"

namespace offprof {

/// What the listing of saved tensors adds up by.
enum class SavedBy { kOp, kModule, kDtype, kPlacement };

/// One saved tensor of a trace's step, in words and numbers.
struct SavedLine {
  std::int32_t number = 0;  ///< among those that autograd saves in a step, from 0: what rules count by
  std::string op;           ///< that saved it
  std::string module;       ///< in which it did; empty: not known, or the model itself
  std::string dtype;
  std::vector<std::int64_t> sizes;
  Bytes bytes = 0;                       ///< number of elements times their size
  std::optional<Bytes> storage_bytes{};  ///< nullopt: it has no storage of the device
  std::int32_t storage = -1;             ///< index in Program::storages; -1: likewise
  std::uint32_t version = 0;             ///< same storage and version, same content
  std::string placement{};               ///< `device`, `quantize:uint8+host`, ...
  PlacementReason reason = PlacementReason::kNothingOffloaded;
};

/// The saved tensors of one operator, module, type or placement.
struct SavedGroup {
  std::string key;
  LedgerEntry saved;
};

/// What `offprof view --saved` shows.
struct SavedListing {
  std::string source;
  std::string policy;                       ///< under which they wait where they do
  std::optional<SavedBy> by{};              ///< nullopt: one line a tensor
  std::vector<SavedLine> lines{};           ///< in the order in which autograd saves them
  std::vector<SavedGroup> groups{};         ///< most bytes first; empty without `by`
  std::optional<std::size_t> most_shown{};  ///< in text, those of most bytes; nullopt: all
};

/// All saved tensors of the trace's step, and where its policy puts them, by a replay.
SavedListing list_saved(const Trace& trace, const std::string& source, std::optional<SavedBy> by,
                        std::optional<std::size_t> most_shown);
nlohmann::ordered_json to_json(const SavedListing& listing);
std::string to_text(const SavedListing& listing, const Page& page);

}  // namespace offprof
