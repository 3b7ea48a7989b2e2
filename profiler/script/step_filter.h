#pragma once

#include <cstdint>
#include <optional>

#include "profiler/recording/recorded_pass.h"
#include "profiler/recording/step_result.h"
#include "profiler/steps/step_order.h"
#include "traces/base/units.h"

namespace offprof {

/// Tells whether a step of a program ran the step program that is recorded.
class StepFilter {
 public:
  /// `kept` is a step of that program, recorded with nothing offloaded.
  explicit StepFilter(RecordedPass kept);

  /// Returns true if the step that ran under `order` was one of the program. A recorded step is compared with
  /// the program (until its backward if the order brings tensors back densely, which may change backward). Of
  /// other steps, the saved tensors and the number of allocations are compared.
  bool accepts(const StepOrder& order, const StepResult& step);
  /// Returns true if as many tensors with as many bytes were saved as in that program.
  bool has_same_tensors(const StepResult& step) const;

 private:
  bool has_same_allocations(const StepOrder& order, const StepResult& step) const;

  RecordedPass kept_;
  Bytes saved_bytes_ = 0;
  std::int64_t allocations_ = 0;
  std::optional<std::int64_t> dense_allocations_;  ///< of steps that bring tensors back densely
};

}  // namespace offprof
