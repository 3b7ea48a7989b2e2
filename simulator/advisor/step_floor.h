#pragma once

#include "traces/base/units.h"
#include "traces/model/trace.h"

namespace offprof {

/// Device memory that a step holds when the optimizer begins, whatever happens to activations, in bytes. All
/// of it is needed at that time, so that the sum is a lower bound of the peak.
struct StepFloor {
  Bytes parameters = 0;
  Bytes master_weights = 0;  ///< copies of the parameters in float32 that the optimizer updates
  Bytes gradients = 0;
  Bytes optimizer = 0;   ///< states of the optimizer
  Bytes inputs = 0;      ///< inputs and buffers
  Bytes workspaces = 0;  ///< of libraries such as cuBLAS, and other tensors that the program holds
  /// The trace does not tell what belongs to the optimizer: `optimizer` has the workspaces too.
  bool is_optimizer_mixed = false;

  Bytes total() const { return parameters + master_weights + gradients + optimizer + inputs + workspaces; }
  /// Returns the part that fully sharded data parallelism divides by the number of ranks.
  Bytes sharded() const { return parameters + master_weights + gradients + optimizer; }

  bool operator==(const StepFloor&) const = default;
};

/// Returns the floor of a step with nothing done, from its trace.
StepFloor floor_of(const Trace& trace);

}  // namespace offprof
