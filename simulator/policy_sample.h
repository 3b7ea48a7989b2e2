#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "simulator/step.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/transform_cost.h"

namespace offprof {

/// `count` settings that span what a policy can be for this step, `count` being at least 3: the presets; then
/// thresholds, plans and, more rarely, TRL's rules with another threshold and stash. Thresholds, shares of
/// the step that a plan moves, stashes (counted or in bytes), prefetch windows and the number of copy streams
/// are each spread evenly over their ranges, in the sizes that the step saves. The same every time; `keep` is
/// the first. Fewer where the step saves nothing that may move.
std::vector<Policy> spanning_policies(const Step& step, std::size_t count);

/// Settings whose rules span what placements can be for this program: each of them for all tensors that it
/// takes, and for the first half of them, the rest on the host; with and without stash and window. The
/// transforms are those of `profiles`; tensors are made again where the program has recipes, and go to
/// the `disk`, kDisk or kCompress, where there is one. The same every time; none where there are no
/// transforms, no recipes and no disk.
std::vector<Policy> ruled_policies(const Program& program, std::span<const TransformProfile> profiles,
                                   std::optional<Place> disk);

}  // namespace offprof
