#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "traces/placement.h"
#include "traces/units.h"

namespace offprof {

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
  kRule,              ///< any place: a rule of the policy says so
  kUnfitToPack,  ///< any place: a rule would have it packed, but it does not fill its storage densely, or
                 ///< shares it with tensors that are to be packed otherwise
  kPaged,        ///< device: see Movability
  kDiskFull,     ///< host, or device where host memory is full too: the disk has no room for it
  kUnfitToRecompute,  ///< device: a rule would have it made again, but it has no recipe, or what that takes
                      ///< would not be there or not be exact
};

std::string_view to_string(PlacementReason reason);

/// The bytes that autograd saved in a step, by where they went and why. Its sum is all of them.
struct LedgerEntry {
  std::int64_t tensors = 0;
  Bytes bytes = 0;  ///< that autograd saved

  bool operator==(const LedgerEntry&) const = default;
};
struct LedgerKey {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kNothingOffloaded;
  std::string transform{};  ///< that packed it; empty: none

  auto operator<=>(const LedgerKey&) const = default;  // NOLINT(modernize-use-nullptr): compares with 0
};
using Ledger = std::map<LedgerKey, LedgerEntry>;

}  // namespace offprof
