#pragma once

#include <cstddef>

#include "simulator/advisor/goal.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/settings/frontier.h"
#include "traces/model/link.h"

namespace offprof {

/// Extent of a search for mixtures.
enum class SearchExtent {
  kCoarse,  ///< few stashes and windows: tells which configuration is best
  kFine     ///< finer ones too, around the best
};

struct MixtureSearchResult {
  Candidate best;
  std::size_t replayed = 0;
};

/// Searches the policy that is best for the goal among mixtures of recomputation and offloading. For each set
/// of rules, stash and window it finds the share by bisection: the least that fits into the memory or, for
/// Objective::kMemory, the largest within the time. It improves one of these settings at a time until none
/// improves. Every figure is that of a replay. The result is never worse than keeping everything, and does
/// not depend on `threads` (0: one per core).
MixtureSearchResult search_mixtures(const TraceSteps& steps, const Link& link, const AdviceGoal& goal,
                                    SearchExtent extent, unsigned threads);

}  // namespace offprof
