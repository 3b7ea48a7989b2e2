#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "profiler/plugin/plugin.h"
#include "profiler/recording/step_result.h"

namespace offprof {

/// Steps of one visit to a policy.
struct VisitResult {
  std::vector<StepResult> steps;  ///< as many as were requested
  /// Message as in PolicyRun. If it is not empty, there are no steps, and the policy is not visited again.
  std::string out_of_memory{};
};

/// Functions that measure_interleaved calls. `train` and `core_to_core_ns` must not be empty.
struct InterleavedJob {
  /// Trains the given number of steps.
  std::function<VisitResult(const Policy& policy, int steps)> train;
  /// See Device.
  std::function<std::optional<Nanoseconds>()> core_to_core_ns;
  Progress progress;
};

/// Trains under every policy of `comparison`, round by round, and adds the measurements to `result`, whose
/// runs are in the order of the policies. Leaves out policies that ran out of memory before.
void measure_interleaved(const InterleavedJob& job, const Comparison& comparison, ComparisonResult& result);

}  // namespace offprof
