#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "simulator/tuner/settings/frontier.h"
#include "traces/model/placement.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Cost and effect of one placement alone: all tensors that it accepts have it, the others are kept.
struct PlacementCost {
  Placement placement;
  bool is_lossless = true;
  std::int64_t tensors = 0;  ///< number of tensors that it accepts
  Bytes bytes = 0;           ///< size of these tensors as autograd saved them
  Candidate candidate;
};

struct PlacementSearchResult {
  std::vector<PlacementCost> alone;  ///< places without a transform, then each transform, then recompute
  Candidate best;                    ///< best of all that were tried
  std::size_t groups = 0;            ///< groups of tensors, each of which gets one placement
  std::size_t replayed = 0;
};

/// Functions that predict and compare candidates.
struct PlacementJudge {
  std::function<Candidate(const Policy&)> predict;  ///< called from several threads at once
  std::function<bool(const Candidate& a, const Candidate& b)> is_better;
};

/// Assigns placements to groups of saved tensors. A group holds the tensors of one operator, dtype, rank and
/// storage size, which a rule can distinguish. The search begins with the best single placement for all
/// tensors. It visits the groups, those with most bytes first, and gives each the best placement while the
/// others keep theirs. Then it tries other stashes and windows. It repeats this until nothing improves, or
/// `most_replays` are spent. The search is not exhaustive, and its result is never worse than the best of
/// PlacementSearchResult::alone.
///
/// `base` gives the initial stash and window, and the host cap; its rules, plan and threshold are ignored.
/// `profiles` are the transforms that may be used. `places` are the places where tensors may wait, encoded or
/// not, kDevice first. Groups for which the step program has recompute steps may be recomputed.
PlacementSearchResult search_placements(const StepProgram& program,
                                        std::span<const TransformProfile> profiles,
                                        std::span<const Place> places, const Policy& base,
                                        const PlacementJudge& judge, std::size_t most_replays,
                                        unsigned threads);

}  // namespace offprof
