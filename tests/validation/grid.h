#pragma once

#include <vector>

#include "simulator/replay/step.h"
#include "traces/model/policy.h"

namespace offprof {

enum class GridSize {
  /// 7 thresholds x stash {0,1,2,3,5,8,13} x prefetch {0, 1 MiB, 64 MiB}, and the presets.
  kFull,
  /// Every value of each axis at least once, and the presets.
  kCrossSection,
};

/// Returns settings that span the space of policies for this step: thresholds from 0 to above the largest
/// storage that it saves.
std::vector<Policy> validation_grid(const Step& step, GridSize size);

}  // namespace offprof
