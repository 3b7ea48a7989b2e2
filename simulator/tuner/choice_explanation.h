#pragma once

#include <optional>
#include <vector>

#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/tune_inputs.h"
#include "simulator/tuner/tune_result.h"

namespace offprof {

/// Returns why the chosen policy is not better, and the price of more memory and of a link twice as fast.
/// `frontier` is the Pareto frontier over device memory taken and step time, least memory first; it holds
/// `chosen`.
ChoiceExplanation explain_choice(const TuneInputs& inputs, const GoalOrder& order,
                                 const std::vector<Candidate>& frontier, const Candidate& chosen);

}  // namespace offprof
