#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/report/step_record.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Follows the operators and phases of a step program, event by event.
class ProgramWalk {
 public:
  /// `program` must outlive the object.
  explicit ProgramWalk(const StepProgram& program);

  /// Passes all events before index `end` of StepProgram::events.
  void advance_to(std::size_t end);

  /// Index in StepProgram::names of the current phase; -1: none has begun.
  std::int32_t phase() const { return phase_; }
  /// Origin of what happens here. The operator is the innermost one. Module and line are those of the
  /// tensors that the outermost operator saves or unpacks.
  Origin origin() const;
  /// Number of open operators.
  std::size_t depth() const { return open_.size(); }

 private:
  const StepProgram& program_;
  std::vector<Origin> outermost_;  ///< by event: origin of the outermost operator that begins there
  std::vector<std::size_t> open_;  ///< events at which the open operators began
  std::size_t next_ = 0;
  std::int32_t phase_ = -1;
};

}  // namespace offprof
