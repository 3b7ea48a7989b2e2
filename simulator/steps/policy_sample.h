#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simulator/replay/step.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Returns `count` settings (at least 3) that span the possible policies of this step. The presets come
/// first. Then come thresholds, plans and, more rarely, TRL's rules with another threshold and stash.
/// Thresholds, the share of the step that a plan moves, stashes (counted or in bytes), prefetch windows and
/// the number of copy streams are each spread evenly over their ranges, in the sizes that the step saves. The
/// result is deterministic; `keep` is the first setting. Returns only `keep` if the step saves nothing that
/// may move.
std::vector<Policy> spanning_policies(const Step& step, std::size_t count);

/// Returns settings whose rules span the possible placements of this step program. Each placement is used
/// once for all tensors that it accepts, and once for the first half of them, with the rest on the host.
/// Settings with and without a stash and a window alternate. The transforms are those of `profiles`. Tensors
/// are recomputed if the program has recompute steps, and go to `disk` (kDisk or kCompress) if it is given.
/// The result is deterministic; it is empty if there are no transforms, no recompute steps and no disk.
std::vector<Policy> ruled_policies(const StepProgram& program, std::span<const TransformProfile> profiles,
                                   std::optional<Place> disk);

}  // namespace offprof
