#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/setting_sweep.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// The family of thresholds and stashes: every threshold, every stash by count or by bytes, every window.
struct FamilyRanges {
  std::vector<SettingRange> ranges;
  /// Upper bound on those with different effects, over all thresholds, included or not.
  double settings = 0;
  bool is_whole = true;  ///< false: there are too many thresholds or stashes, and some are left out
};

/// Returns a few hundred to a few thousand policies spread over the family, with small stashes and windows in
/// finer steps. A sweep begins with them, so that it can rule out settings early. Returns an even sample if
/// there are more than `most`.
std::vector<Policy> coarse_grid(const std::vector<MovableVersion>& versions, const Policy& base,
                                std::size_t most = std::numeric_limits<std::size_t>::max());

/// Returns the ranges of settings to sweep. `base` gives all other fields of every policy. `replays` is the
/// number of replays to spend on the ranges.
FamilyRanges family_ranges(const std::vector<MovableVersion>& versions, const Policy& base,
                           std::size_t replays);

}  // namespace offprof
