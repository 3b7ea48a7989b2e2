#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "engine/transforms/transform.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/session/loaded_model.h"
#include "profiler/stages/gradient_check.h"
#include "profiler/stages/policy_steps.h"
#include "profiler/training/trainer.h"
#include "traces/model/trace.h"

namespace offprof {

/// A model that is loaded, recorded and calibrated: its steps can be measured under any policy.
class Job {
 public:
  /// `trainer` is that of `loaded`, whose trace is complete, and the steps of `source` are the trainer's.
  /// `recorded` is the guide of the step program. `transforms` are those whose costs are in the trace. The
  /// references in `source` must outlive the job.
  Job(StepSource source, std::unique_ptr<LoadedModel> loaded, std::unique_ptr<Trainer> trainer,
      StepGuide recorded, std::vector<std::shared_ptr<const Transform>> transforms);

  /// Returns the model, its environment, the policy to run and the step program, without
  /// measured steps.
  const Trace& trace() const { return loaded_->trace; }

  /// Compares the gradients under `policy` with those of plain autograd.
  GradientCheck check_gradients(const Policy& policy);
  /// Frees the reference gradients of check_gradients. They take device memory, so call it before steps are
  /// measured.
  void forget_gradients() { reference_.forget(); }

  /// Trains steps under `policy` within the device's capacity and the policy's host memory.
  std::vector<StepResult> train(const Policy& policy, int steps, Recording recording);
  /// Measures steps under the request's policy: see measure_policy.
  void measure(const RunRequest& request, StepTracing* tracing, RunResult& result);

  /// See PolicySteps::refusal_beforehand.
  std::optional<OutOfMemory> refusal_beforehand() { return steps_.refusal_beforehand(); }

 private:
  TracingCost tracing_cost(const Policy& policy);

  StepSource source_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<Trainer> trainer_;
  PolicySteps steps_;
  GradientReference reference_;  ///< gradients of plain autograd
  /// Waits at the end, since copies may still use memory that is freed with the trainer.
  IdleAtEnd idle_at_end_;
};

/// Loads, warms up, records and calibrates the model of a request. `device`, `progress` and `tracing` must
/// outlive the job. `tracing` is for the device's GPU; nullptr: nothing is traced. Throws Error if the
/// request cannot be recorded.
std::unique_ptr<Job> prepare_job(RunRequest request, Device& device, const Progress& progress,
                                 StepTracing* tracing = nullptr);

}  // namespace offprof
