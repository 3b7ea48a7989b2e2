#pragma once

#include <memory>
#include <string>

#include "simulator/advisor/advice.h"
#include "simulator/advisor/advise.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/settings/frontier.h"

namespace offprof {

/// A recorded configuration, prepared for replay.
struct PreparedStep {
  Configuration configuration;
  std::string name;
  std::shared_ptr<const Trace> trace;
  TraceSteps steps;
  Link link;

  /// `recorded.trace` must not be null.
  explicit PreparedStep(const RecordedStep& recorded);
};

/// Returns the way that runs the step under the candidate's policy.
Way way_of(const PreparedStep& step, const std::string& name, const Candidate& candidate,
           const AdviceGoal& goal);

/// Returns the first of the ways with equal configurations and equal policies, or equal names but for their
/// numbers.
std::vector<Way> distinct(std::vector<Way> ways);

/// Returns the name of a configuration with what the policy adds to it: `NAME + recompute + offload all`.
std::string mixture_name(const std::string& configuration, const Policy& policy);

}  // namespace offprof
