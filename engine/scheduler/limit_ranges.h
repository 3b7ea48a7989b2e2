#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace offprof {

/// The limits from `begin` to below `end`.
struct LimitRange {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = kNoEnd;

  /// Leaves out the limits that would not have allowed `sum`.
  void allow(std::int64_t sum) { begin = std::max(begin, sum); }
  /// Leaves out the limits that would have allowed `sum`.
  void refuse(std::int64_t sum) { end = std::min(end, sum); }

  bool operator==(const LimitRange&) const = default;
};

/// For each limit of a policy, the values that lead to the same decisions, all other fields being equal. A
/// scheduler only compares a limit with the sum that would be held, so all limits between the largest allowed
/// sum and the smallest refused one are equivalent.
struct LimitRanges {
  LimitRange stash_count, stash_bytes, prefetch_bytes;

  bool operator==(const LimitRanges&) const = default;
};

}  // namespace offprof
