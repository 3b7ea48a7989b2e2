#pragma once

#include <cstddef>
#include <limits>
#include <vector>

#include "simulator/step.h"
#include "simulator/tuner/frontier.h"
#include "simulator/tuner/movable_version.h"
#include "simulator/tuner/setting_sweep.h"
#include "traces/link.h"
#include "traces/policy.h"

namespace offprof {

/// The threshold-and-stash family: every threshold, every stash by count or by bytes, every window.
struct FamilyRanges {
  std::vector<SettingRange> ranges;
  double settings = 0;   ///< that can differ, at most; that of all thresholds, left out or not
  bool is_whole = true;  ///< false: thresholds or stashes are left out, as there are too many
};

/// A few hundred to a few thousand policies spread over the family, small stashes and windows in finer steps:
/// what a sweep begins with, so that it knows early what is not worth looking at. Where they are more than
/// `most`, an even sample.
std::vector<Policy> coarse_grid(const std::vector<MovableVersion>& versions, const Policy& base,
                                std::size_t most = std::numeric_limits<std::size_t>::max());

/// `base`: what every policy has beside threshold and setting. `replays`: what is to be spent on them.
FamilyRanges family_ranges(const std::vector<MovableVersion>& versions, const Policy& base,
                           std::size_t replays);

}  // namespace offprof
