#pragma once

#include <optional>

#include "simulator/step.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

/// The step, or steps, of a trace, ready for replay: under TRL's rules tensors come back dense, and where
/// that makes a difference the trace has a program of its own for it. The trace must outlive it.
class TraceSteps {
 public:
  explicit TraceSteps(const Trace& trace) : program_(trace.program), step_(trace.program) {
    if (!trace.dense_program) return;
    dense_program_ = &*trace.dense_program;
    dense_step_.emplace(*dense_program_);
  }

  const Program& program(const Policy& policy) const { return is_dense(policy) ? *dense_program_ : program_; }
  const Step& step(const Policy& policy) const { return is_dense(policy) ? *dense_step_ : step_; }

 private:
  bool is_dense(const Policy& policy) const {
    return policy.scheduler == SchedulerKind::kTrl && dense_program_ != nullptr;
  }

  const Program& program_;
  const Program* dense_program_ = nullptr;
  Step step_;
  std::optional<Step> dense_step_;
};

}  // namespace offprof
