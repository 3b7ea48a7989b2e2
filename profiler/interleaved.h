#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/plugin.h"
#include "profiler/step_result.h"

namespace offprof {

/// What measure_interleaved drives. Neither function is empty.
struct InterleavedJob {
  /// Trains so many steps.
  std::function<std::vector<StepResult>(const Policy& policy, int steps)> train;
  /// See Device.
  std::function<std::optional<Nanoseconds>()> core_to_core_ns;
  Progress progress;
};

/// Trains under every policy of `comparison`, round by round, and adds what that came to to `result`, whose
/// runs are those of the policies in their order.
void measure_interleaved(const InterleavedJob& job, const Comparison& comparison, ComparisonResult& result);

}  // namespace offprof
