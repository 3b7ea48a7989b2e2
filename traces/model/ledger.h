#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "traces/base/units.h"
#include "traces/model/placement.h"

namespace offprof {

/// Reason for the place of a saved tensor.
enum class PlacementReason : std::uint8_t {
  kOffloaded,   ///< host: the policy moves it
  kSharedCopy,  ///< host: an earlier saved tensor holds the copy of the same storage version
  kParameter,   ///< device; this and the next five: see Movability
  kBuffer,
  kInput,
  kResident,
  kEmpty,
  kUnsupportedLayout,
  kBelowThreshold,    ///< device: smaller than the policy's threshold
  kNothingOffloaded,  ///< device: the policy offloads nothing
  kHostFull,          ///< device: the host cap leaves no room for the tensor
  kNotInPlan,         ///< device: the policy's plan does not contain the tensor
  kRule,              ///< any place: a rule of the policy decided
  /// Any place: a rule requests encoding, but the tensor does not fill its storage densely, or shares the
  /// storage with tensors that are to be encoded differently.
  kUnfitToEncode,
  kParameterGroup,  ///< device: see Movability
  kDiskFull,        ///< host, or device if host memory is full too: the disk has no room
  /// Device: a rule requests recomputation, but the tensor has no recompute steps, or their sources would not
  /// be available or not be exact.
  kUnfitToRecompute,
  kUnpacked,  ///< device: see Movability
  kCount      ///< no reason: their number
};

std::string_view to_string(PlacementReason reason);

/// Number and bytes of the tensors that autograd saved in a step, for one place and reason. The entries of a
/// Ledger add up to all saved tensors.
struct LedgerEntry {
  std::int64_t tensors = 0;
  Bytes bytes = 0;  ///< bytes that autograd saved

  bool operator==(const LedgerEntry&) const = default;
};
struct LedgerKey {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kNothingOffloaded;
  std::string transform{};  ///< transform that encoded the tensor; empty: none

  auto operator<=>(const LedgerKey&) const = default;  // NOLINT(modernize-use-nullptr): compares with 0
};
using Ledger = std::map<LedgerKey, LedgerEntry>;

}  // namespace offprof
