#pragma once

#include <cstddef>

#include "simulator/replay/step.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "simulator/tuner/tune_goal.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// Inputs of all stages of the tuner.
struct TuneInputs {
  const TraceSteps& steps;
  Link link;
  const TuneGoal& goal;
  const Step& step;  ///< the step of policies that bring tensors back as they were saved
  ReplayTree tree;
  Policy base;  ///< with the goal's caps, which every policy of a search has

  /// Returns how many policies a stage may replay with at most `events` replayed events: at least 500, at
  /// most `most`. Stages are limited by events, not by a clock, so that results are reproducible; a core
  /// replays some tens of millions of events per second.
  std::size_t replays_of(std::size_t events, std::size_t most = 50'000) const;

  /// Returns the number of threads for replays; see ReplayTree::threads.
  unsigned threads() const { return tree.threads({.threads = goal.threads}); }
};

/// `steps` and `goal` must outlive the result.
TuneInputs make_tune_inputs(const TraceSteps& steps, const Link& link, const TuneGoal& goal);

/// Returns true if everything that a search leaves out is certainly no better: see FamilySearch::is_exact.
/// `slack` is FamilySearch::slack_ns.
bool goes_by_facts(const TuneInputs& inputs, Nanoseconds slack);

}  // namespace offprof
