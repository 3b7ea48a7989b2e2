#include "simulator/tuner/tune_inputs.h"

#include <algorithm>

namespace offprof {
namespace {

constexpr std::size_t kFewestReplays = 500;

Policy base_of(const TuneGoal& goal) {
  Policy base;
  base.name = "tuned";
  base.host_memory_bytes = goal.host_memory_bytes;
  base.disk_memory_bytes = goal.disk_memory_bytes;
  return base;
}

}  // namespace

TuneInputs make_tune_inputs(const TraceSteps& steps, const Link& link, const TuneGoal& goal) {
  const Step& step = steps.step(preset_policy("keep"));
  return {steps, link, goal, step, ReplayTree(step, link), base_of(goal)};
}

std::size_t TuneInputs::replays_of(std::size_t events, std::size_t most) const {
  return std::clamp(events / std::max<std::size_t>(step.events().size(), 1), kFewestReplays, most);
}

bool goes_by_facts(const TuneInputs& inputs, Nanoseconds slack) {
  const Step& step = inputs.step;
  return !inputs.link.slows_both() && !inputs.link.slows_compute() &&
         step.costs().slowdown_ns_per_byte <= 0 && !step.meets_copies() && !step.allocator() && slack == 0;
}

}  // namespace offprof
