#pragma once

#include <functional>
#include <string>

#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/tune_goal.h"
#include "simulator/tuner/tune_result.h"
#include "traces/model/link.h"

namespace offprof {

/// Searches thresholds, stashes and windows and, if requested, per-tensor plans, and chooses by the goal.
/// docs/internals/tuner.md describes the method. Every candidate's figures come from a replay. `progress` is
/// called with a phrase for each stage of the search.
TuneResult tune(
    const TraceSteps& steps, const Link& link, const TuneGoal& goal,
    const std::function<void(const std::string&)>& progress = [](const std::string&) {});

}  // namespace offprof
