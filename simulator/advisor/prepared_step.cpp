#include "simulator/advisor/prepared_step.h"

#include <fmt/format.h>

#include "traces/analysis/fingerprint.h"

namespace offprof {

PreparedStep::PreparedStep(const RecordedStep& recorded)
    : configuration(recorded.configuration),
      name(recorded.name),
      trace(recorded.trace),
      steps(*trace),
      link(trace->environment.link) {}

Way way_of(const PreparedStep& step, const std::string& name, const Candidate& candidate,
           const AdviceGoal& goal) {
  Way way{name, step.configuration, candidate.policy, candidate.predicted};
  way.is_within = is_within(way.predicted, goal);
  way.run_fingerprint = fingerprint_of_run(step.trace->model, step.trace->settings);
  way.saved_fingerprint = fingerprint_of_saved(step.trace->program.saved);
  return way;
}

std::string mixture_name(const std::string& configuration, const Policy& policy) {
  std::string name = configuration;
  const auto add = [&](const std::string& part) { name += (name.empty() ? "" : " + ") + part; };
  if (!policy.rules.empty()) add("recompute");
  if (policy.tensors)
    add(fmt::format("offload {} tensors", policy.tensors->size()));
  else if (policy.threshold_bytes)
    add("offload all");
  return name.empty() ? "keep" : name;
}

}  // namespace offprof
