#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/transforms/transform.h"
#include "profiler/stages/record_program.h"
#include "profiler/steps/step_script.h"
#include "traces/model/trace.h"

namespace offprof {

/// Steps under any policy, after the step program was recorded, within the memory that they may use.
class PolicySteps {
 public:
  /// `trace` holds the step program and the costs of the transforms. `recorded` is the guide of the program.
  /// `source` and `trace` must outlive this object and its scripts.
  PolicySteps(const StepSource& source, const Trace& trace, StepGuide recorded,
              std::vector<std::shared_ptr<const Transform>> transforms)
      : source_(source), trace_(trace), recorded_(std::move(recorded)), transforms_(std::move(transforms)) {}

  /// Returns the guide of steps under `policy`: its rules are resolved against the recorded step.
  StepGuide guide_for(const Policy& policy) const;
  /// Returns true if a transform that `guide` places tensors with loses something.
  static bool loses_something(const StepGuide& guide);

  /// Asks for steps under `policy` within the device's capacity and the policy's host memory. They begin with
  /// an empty cache, except those of a timeline right after others under this policy.
  StepScript<std::vector<StepResult>> train(Policy policy, int steps, Recording recording);
  /// Limits the memory of steps under `policy`; lift_limits removes the limits.
  void set_limits(const Policy& policy);

  const StepBudget& budget() const { return source_.budget; }
  /// Returns the device capacity of such steps; nullopt: that of the machine.
  std::optional<Bytes> capacity() const;
  /// Returns an error if the data on the device before a step already exceed its capacity. A caching
  /// allocator would not notice, since it does not ask the device again for memory that it holds.
  std::optional<OutOfMemory> refusal_beforehand();

 private:
  std::optional<Bytes> host_capacity(const Policy& policy) const;
  void limit_memory(const Policy& policy);

  const StepSource& source_;
  const Trace& trace_;
  StepGuide recorded_;
  std::vector<std::shared_ptr<const Transform>> transforms_;
  std::optional<Policy> last_policy_;  ///< the policy of the current limits
};

}  // namespace offprof
