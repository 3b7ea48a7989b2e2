#pragma once

#include <compare>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/io/json_access.h"
#include "traces/model/ledger.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Place in a program that saves or allocates tensors. Numbers in the path of a module are replaced by `*`,
/// so that the layers of a stack are one place: `model.layers.*.mlp`. An empty text is not known.
struct SaveSite {
  std::string op;
  std::string module;
  std::string line;                                   ///< `FILE:LINE`
  auto operator<=>(const SaveSite&) const = default;  // NOLINT(modernize-use-nullptr): compares with 0
};

/// Saved tensors and their bytes, by the place that saved them.
using SavedBySite = std::map<SaveSite, LedgerEntry>;

SavedBySite saved_by_site(const StepProgram& program);

/// Returns what the step has allocated and not freed at its peak with nothing offloaded, by the places that
/// saved it, or else by the operators that allocated it. In the program of a memory snapshot `op` is a
/// function, and `line` where it allocated.
SavedBySite in_use_at_peak(const StepProgram& program);

nlohmann::ordered_json to_json(const SavedBySite& saved);
/// Throws Error (input) if the value is not a list of such places.
SavedBySite saved_by_site_from_json(const JsonValue& json);

/// Saved tensors of one place on both sides.
struct SiteDifference {
  SaveSite site;
  LedgerEntry base, now;
  Bytes difference() const { return now.bytes - base.bytes; }
};

/// Returns the places that save other tensors, the largest growth first. Empty if a side does not list its
/// places. A place that has moved to another line or file and saves the same is no difference.
std::vector<SiteDifference> site_differences(const SavedBySite& base, const SavedBySite& now);

}  // namespace offprof
