#pragma once

#include <cstddef>
#include <vector>

#include "simulator/tuner/settings/family_search.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/tune_inputs.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// Extent of the search over thresholds, stashes and windows.
struct FamilyPlan {
  std::size_t replays = 0;   ///< limit of the sweep
  std::vector<Policy> grid;  ///< replayed first
  FamilyRanges family;
  Nanoseconds slack_ns = 0;  ///< see FamilySearch
};

FamilyPlan plan_family(const TuneInputs& inputs, const std::vector<MovableVersion>& versions);

struct FamilyStageResult {
  FamilySearch summary;
  ReplayEffort effort;
};

/// Replays the grid and sweeps the ranges. The candidates go into `peaks`, the frontier over device peak and
/// step time.
FamilyStageResult search_family(const TuneInputs& inputs, const FamilyPlan& plan, Frontier& peaks);

}  // namespace offprof
