#pragma once

#include <optional>

#include "profiler/recording/step_result.h"
#include "profiler/steps/step_order.h"
#include "traces/base/device_counts.h"
#include "traces/base/units.h"

namespace offprof {

/// Tells whether a step of a program ran the step program that is recorded.
class StepFilter {
 public:
  /// `kept` is a step of that program, recorded with nothing offloaded.
  explicit StepFilter(const StepResult& kept);

  /// Returns true if the step that ran under `order` was one of the program. A recorded step is compared with
  /// the program (until its backward if the order brings tensors back densely, which may change backward). Of
  /// other steps, the saved tensors are compared, and how many allocations and commands the model made.
  bool accepts(const StepOrder& order, const StepResult& step);
  /// Returns true if as many tensors with as many bytes were saved as in that program.
  bool has_same_tensors(const StepResult& step) const;

 private:
  bool has_same_counts(const StepOrder& order, const StepResult& step) const;

  RecordedPass kept_;
  Bytes saved_bytes_ = 0;
  DeviceCounts counts_;
  std::optional<DeviceCounts> dense_counts_;  ///< of a step that brings all tensors back densely
};

}  // namespace offprof
