#include "simulator/tuner/choice_explanation.h"

#include "simulator/replay/replay.h"
#include "simulator/tuner/prices.h"
#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

GoalLimit binding_limit(const TuneGoal& goal, const std::vector<Candidate>& frontier, const Candidate& chosen,
                        bool has_memory_price) {
  if (goal.memory_budget_bytes) return has_memory_price ? GoalLimit::kDeviceMemory : GoalLimit::kNone;
  const bool takes_least = taken_by(chosen) == taken_by(frontier.front());
  return takes_least ? GoalLimit::kNone : GoalLimit::kSlowdown;
}

/// Returns the price of a link twice as fast.
LinkPrice price_link(const TuneInputs& inputs, const GoalOrder& order, std::vector<Candidate> candidates,
                     const Candidate& chosen) {
  LinkPrice price;
  const Link faster = times_as_fast(inputs.link, price.factor);
  for_each_index(candidates.size(), inputs.threads(), [&](std::size_t i) {
    candidates[i].predicted.step_time_ns =
        replay(inputs.step, candidates[i].policy, faster).metrics.step_time_ns;
  });
  price.best = chosen;
  price.best.predicted = inputs.steps.predict(price.best.policy, faster);
  for (const Candidate& candidate : candidates)
    if (order.is_better(candidate, price.best)) price.best = candidate;
  price.best.predicted = inputs.steps.predict(price.best.policy, faster);
  return price;
}

}  // namespace

ChoiceExplanation explain_choice(const TuneInputs& inputs, const GoalOrder& order,
                                 const std::vector<Candidate>& frontier, const Candidate& chosen) {
  ChoiceExplanation explanation;
  explanation.reliefs = reliefs_of(inputs.step, chosen.policy, inputs.link);
  explanation.fills_host = fills_host(inputs.step, chosen.policy);
  explanation.memory_price = memory_price(frontier, chosen);
  explanation.binding = binding_limit(inputs.goal, frontier, chosen, explanation.memory_price.has_value());
  explanation.link_price = price_link(inputs, order, frontier, chosen);
  return explanation;
}

}  // namespace offprof
