#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/plugin.h"
#include "profiler/step_result.h"

namespace offprof {

/// Steps of one visit.
struct VisitResult {
  std::vector<StepResult> steps;  ///< as many as were asked for
  /// As PolicyRun has it; not empty: there are no steps, and the policy is visited no more.
  std::string out_of_memory{};
};

/// What measure_interleaved drives. Neither function is empty.
struct InterleavedJob {
  /// Trains so many steps.
  std::function<VisitResult(const Policy& policy, int steps)> train;
  /// See Device.
  std::function<std::optional<Nanoseconds>()> core_to_core_ns;
  Progress progress;
};

/// Trains under every policy of `comparison`, round by round, and adds what that came to to `result`, whose
/// runs are those of the policies in their order. Policies that ran out of memory before are left out.
void measure_interleaved(const InterleavedJob& job, const Comparison& comparison, ComparisonResult& result);

}  // namespace offprof
