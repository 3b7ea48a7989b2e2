#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "simulator/tuner/frontier.h"
#include "traces/placement.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/transform_cost.h"

namespace offprof {

/// One placement for all tensors that it takes, the others kept: what it costs and saves by itself.
struct PlacementCost {
  Placement placement;
  bool is_lossless = true;
  std::int64_t tensors = 0;  ///< that it takes
  Bytes bytes = 0;           ///< of them, as autograd saved them
  Candidate candidate;
};

struct PlacementSearchResult {
  std::vector<PlacementCost> alone;  ///< in the order of their names
  Candidate best;                    ///< of all that were tried
  std::size_t groups = 0;            ///< of tensors, among which placements were dealt out
  std::size_t replayed = 0;
};

/// How candidates are made and judged.
struct PlacementJudge {
  std::function<Candidate(const Policy&)> predict;  ///< from several threads at once
  std::function<bool(const Candidate& a, const Candidate& b)> is_better;
};

/// Deals out placements to groups of saved tensors: those of one operator, dtype, rank and storage size,
/// which a rule can tell apart. From the best placement for all it goes through the groups, those with most
/// bytes first, and gives each what is best while the others stay as they are; then it tries other stashes
/// and windows; and again, until nothing gets better, or `most_replays` are made. Not exhaustive, and never
/// worse than the best of PlacementSearchResult::alone.
///
/// `base`: stash, window and host cap to begin with; rules, plan and threshold play no part. `profiles`: of
/// the transforms that may be used. `places`: where tensors may wait, packed or not, kDevice first. Groups of
/// which the program has recipes may be made again.
PlacementSearchResult search_placements(const Program& program, std::span<const TransformProfile> profiles,
                                        std::span<const Place> places, const Policy& base,
                                        const PlacementJudge& judge, std::size_t most_replays,
                                        unsigned threads);

}  // namespace offprof
