#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/step.h"
#include "simulator/trace_steps.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"
#include "traces/program.h"

namespace offprof {

/// What the tuner looks for.
struct TuneGoal {
  /// The least step time within that much device memory: the peak, or, where a caching allocator stands
  /// between, all that it takes of the device. Or, where it is nullopt, the least device memory within
  /// `max_slowdown` of the step time without offloading (0.05: five percent).
  std::optional<Bytes> memory_budget_bytes;
  double max_slowdown = 0.05;
  std::optional<Bytes> host_memory_bytes;  ///< cap that every policy is given
};

/// A policy and what it is predicted to do.
struct Candidate {
  Policy policy;
  Metrics predicted;
};

struct TuneResult {
  Candidate keep;                   ///< nothing offloaded: what all is compared with
  Candidate trl;                    ///< TRL's constants
  std::vector<Candidate> frontier;  ///< no other has less memory at as little time; least memory first
  std::optional<Candidate> chosen;  ///< nullopt: no policy fits the budget
  std::size_t policies_tried = 0;
  /// No policy of the offload scheduler goes below: the memory that the program itself holds, with every
  /// movable tensor away whenever no autograd node is using it; and the time with no wait for any copy.
  Bytes device_peak_bound_bytes = 0;
  Nanoseconds step_time_bound_ns = 0;
};

/// Replays the step under a grid of policies, threshold x stash x prefetch, with candidates taken from the
/// sizes that the step saves, and picks by the goal. Uses every core; the result does not depend on how many
/// there are.
TuneResult tune(const TraceSteps& steps, const Link& link, const TuneGoal& goal);

/// The one of the frontier that takes the least of the device (device_bytes_taken).
const Candidate& least_memory(const TuneResult& result);

/// The grid: `keep` first, then every combination of the candidates.
std::vector<Policy> policy_grid(const Step& step, const TuneGoal& goal);

}  // namespace offprof
