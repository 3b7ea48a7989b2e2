#include "simulator/advisor/prepared_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/analysis/fingerprint.h"

namespace offprof {
namespace {

/// Returns the name without the numbers in it: `recompute + offload  tensors`.
std::string without_numbers(std::string name) {
  std::erase_if(name, [](char letter) { return letter >= '0' && letter <= '9'; });
  return name;
}

}  // namespace

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

std::vector<Way> distinct(std::vector<Way> ways) {
  std::vector<Way> kept;
  for (Way& way : ways) {
    const auto is_same = [&](const Way& other) {
      return other.configuration == way.configuration &&
             (without_numbers(other.name) == without_numbers(way.name) || other.policy == way.policy);
    };
    if (std::ranges::none_of(kept, is_same)) kept.push_back(std::move(way));
  }
  return kept;
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
