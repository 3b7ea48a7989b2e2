#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "simulator/tuner/mixture.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/tune_inputs.h"

namespace offprof {

struct PaceSearchResult {
  /// Candidates with the allocator's memory; empty without an allocator. A frontier over peaks does not hold
  /// all of them: the allocator's memory may rank them differently.
  std::vector<Candidate> followed;
  std::size_t replayed = 0;
  ReplayEffort effort;
};

/// Replays paced plans (Pacer) in each of the first `count` mixtures, at most `most` plans. They go into the
/// mixtures' frontiers. With a caching allocator, those that may be on the frontier over the memory that it
/// takes are followed through the allocator, and then plans near that frontier are tried.
PaceSearchResult search_paces(const TuneInputs& inputs, std::deque<Mixture>& mixtures, std::size_t count,
                              std::size_t most);

}  // namespace offprof
