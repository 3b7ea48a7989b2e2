#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "engine/transforms/transform.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/session/gradient_check.h"
#include "profiler/session/loaded_model.h"
#include "profiler/training/trainer.h"
#include "traces/model/trace.h"

namespace offprof {

/// A model that is loaded, recorded and calibrated: its steps can be measured under any policy.
class Job {
 public:
  /// `trainer` is that of `loaded`, whose trace is complete. `recorded` is the guide of its step program.
  /// `transforms` are those whose costs are in the trace. `device` and `progress` must outlive the job.
  Job(Device& device, const Progress& progress, std::unique_ptr<LoadedModel> loaded,
      std::unique_ptr<Trainer> trainer, StepGuide recorded,
      std::vector<std::shared_ptr<const Transform>> transforms);

  /// Returns the model, its environment and its step program, without measured steps.
  const Trace& trace() const { return loaded_->trace; }

  /// Compares the gradients under `policy` with those of plain autograd.
  GradientCheck check_gradients(const Policy& policy);
  /// Frees the gradients that check_gradients compares with. They lie in device memory, so call it before
  /// steps are measured.
  void forget_gradients() { reference_.forget(); }

  /// Trains steps under `policy` within the device's capacity and the policy's host memory.
  std::vector<StepResult> train(const Policy& policy, int steps, Recording recording);
  /// Measures the cost of tracing such steps.
  TracingCost tracing_cost(const Policy& policy);

  /// Returns the device capacity of the measured steps; nullopt: that of the machine.
  std::optional<Bytes> capacity() const;
  /// Returns an error if the data on the device before a step already exceed its capacity. A caching
  /// allocator would not notice, since it does not ask the device again for memory that it holds.
  std::optional<OutOfMemory> refusal_beforehand();

 private:
  void set_limits(const Policy& policy);
  std::optional<Bytes> host_capacity(const Policy& policy) const;
  StepGuide guide_for(const Policy& policy) const;

  Device& device_;
  const Progress& progress_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<Trainer> trainer_;
  StepGuide recorded_;
  std::vector<std::shared_ptr<const Transform>> transforms_;
  GradientReference reference_;        ///< gradients of plain autograd
  std::optional<Policy> last_policy_;  ///< the policy of the current limits
  /// Waits at the end, since copies may still use memory that is freed with the trainer.
  IdleAtEnd idle_at_end_;
};

/// Loads, warms up, records and calibrates the model of a request. `device`, `progress` and `tracing` must
/// outlive the job. `tracing` is for the device's GPU; nullptr: nothing is traced. Throws Error if the
/// request cannot be recorded.
std::unique_ptr<Job> prepare_job(const RunRequest& request, Device& device, const Progress& progress,
                                 StepTracing* tracing = nullptr);

/// Removes the limits of a job's steps for work outside of them.
void lift_limits(Device& device);

}  // namespace offprof
