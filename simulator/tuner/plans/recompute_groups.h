#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/tuner/plans/least_memory.h"
#include "simulator/tuner/settings/movable_version.h"
#include "traces/base/units.h"
#include "traces/model/policy_rule.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Saved contents that backward can recompute and that one rule of a policy selects: the first saved tensors
/// of all of them have the same operator, dtype, number of dimensions and storage size.
struct RecomputeGroup {
  PolicyRule rule;                    ///< places these tensors at kRecompute
  std::vector<std::size_t> versions;  ///< indices in movable_versions
  Bytes bytes = 0;                    ///< sum of the contents' sizes
  Nanoseconds time_ns = 0;            ///< sum of the times of the recomputations
};

/// Returns the groups, those with the least time per byte first. `versions` must be those of the program.
std::vector<RecomputeGroup> recompute_groups(const StepProgram& program,
                                             const std::vector<MovableVersion>& versions);

/// Returns, by version, the time that its recomputation takes on the compute stream; nullopt: it cannot be
/// recomputed. Empty if the program has no recompute steps. `versions` must be those of the program.
std::vector<std::optional<Nanoseconds>> recompute_times(const StepProgram& program,
                                                        const std::vector<MovableVersion>& versions);

/// Storage contents that plans select among, and the memory that is used whichever of them move.
struct PlanSpace {
  std::vector<MovableVersion> versions;
  LeastMemory least;
};

/// Returns the space without the versions of the groups, as if these were off the device from their save to
/// their first unpack at no cost.
PlanSpace without_recomputed(const PlanSpace& space, const std::vector<RecomputeGroup>& groups);

}  // namespace offprof
