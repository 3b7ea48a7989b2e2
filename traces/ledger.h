#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "traces/units.h"

namespace offprof {

/// Where a saved tensor went.
enum class Placement : std::uint8_t { kDevice, kHost };

/// Why it went there.
enum class PlacementReason : std::uint8_t {
  kOffloaded,   ///< host: the policy moves it
  kSharedCopy,  ///< host: a saved tensor before it holds the copy of the same storage version
  kParameter,   ///< device, this and the next five: see Movability
  kBuffer,
  kInput,
  kResident,
  kEmpty,
  kUnsupportedLayout,
  kBelowThreshold,    ///< device: smaller than the policy's threshold
  kNothingOffloaded,  ///< device: the policy offloads nothing
  kHostFull,          ///< device: the host cap leaves no room for it
  kNotInPlan,         ///< device: the policy's plan does not name it
};

std::string_view to_string(Placement placement);
std::string_view to_string(PlacementReason reason);

/// The bytes that autograd saved in a step, by where they went and why. Its sum is all of them.
struct LedgerEntry {
  std::int64_t tensors = 0;
  Bytes bytes = 0;

  bool operator==(const LedgerEntry&) const = default;
};
using Ledger = std::map<std::pair<Placement, PlacementReason>, LedgerEntry>;

}  // namespace offprof
