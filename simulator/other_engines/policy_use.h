#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulator/replay/step.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Effects of a policy on the saved tensors of a recorded step. `program` must outlive the object.
class PolicyUse {
 public:
  /// Replays `step`, which is made from `program`, under `policy`. Throws NotRecorded if the trace lacks
  /// costs that the policy's rules need.
  PolicyUse(const StepProgram& program, const Step& step, const Policy& policy);

  bool moves_any() const { return smallest_moved_bytes_.has_value(); }
  bool recomputes_any() const { return !recomputed_ops_.empty(); }
  /// Size of the smallest tensor that leaves the device (places host, disk and compress); nullopt: none does.
  std::optional<Bytes> smallest_moved_bytes() const { return smallest_moved_bytes_; }
  /// Modules with a tensor that leaves the device.
  const std::set<std::string>& moving_modules() const { return moving_; }
  /// Modules of which no tensor leaves the device, although one of at least `min_bytes` could.
  std::set<std::string> keeping_modules(Bytes min_bytes) const;
  /// Modules with a recomputed tensor.
  const std::set<std::string>& recomputing_modules() const { return recomputing_; }
  /// Operators that recompute tensors, each once: `aten::gelu`.
  const std::set<std::string>& recomputed_ops() const { return recomputed_ops_; }

 private:
  void note(SavedId tensor, Place place);

  const StepProgram& program_;
  std::vector<Place> places_;  ///< by saved tensor
  std::set<std::string> moving_, recomputing_;
  std::set<std::string> recomputed_ops_;
  std::optional<Bytes> smallest_moved_bytes_;
};

/// Returns the paths of all modules that save tensors in the step.
std::set<std::string> saving_modules(const StepProgram& program);

/// Returns the paths of the checkpointed modules of the step.
std::set<std::string> checkpointed_modules(const StepProgram& program);

/// Returns the type of most saved bytes of the step, as `bfloat16`; empty if nothing is saved.
std::string main_dtype(const StepProgram& program);

}  // namespace offprof
