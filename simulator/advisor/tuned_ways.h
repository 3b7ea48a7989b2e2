#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/advisor/goal.h"
#include "simulator/advisor/prepared_step.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// A policy and what it is.
struct NamedCandidate {
  std::string name;
  Candidate candidate;
};

/// Tunes the policy of a step for the goal. nullopt: even keeping everything takes longer than the goal
/// allows. `threads`: 0: one per core.
std::optional<TuneResult> tune_step(const PreparedStep& step, const AdviceGoal& goal, unsigned threads);

/// Returns what other tools do, and the best threshold, plan and rules of a tuned step.
std::vector<NamedCandidate> single_ways(const TuneResult& tuned, const AdviceGoal& goal);

}  // namespace offprof
