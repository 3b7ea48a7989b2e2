#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "engine/models/model.h"
#include "engine/parameters/parameter_offloader.h"
#include "profiler/calibration/cost_calibration.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/session/gradient_check.h"
#include "profiler/training/trainer.h"
#include "traces/model/trace.h"

namespace offprof {

/// A model that is loaded and recorded on a device, ready for steps under any policy.
class Job {
 public:
  /// Loads and records the model. `request`, `device`, `progress` and `tracing` must outlive the job.
  /// `tracing` is for the device's GPU; nullptr: nothing is traced. Throws Error if the request cannot be
  /// recorded.
  Job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing = nullptr);

  /// Returns the model, its environment and its step program, without measured steps.
  const Trace& trace() const { return trace_; }

  /// Compares the gradients under `policy` with those of plain autograd.
  GradientCheck check_gradients(const Policy& policy);
  /// Frees the gradients that check_gradients compares with. They lie in device memory, so call it before
  /// steps are measured.
  void forget_gradients() { reference_->forget(); }

  /// Trains steps under `policy` within the device's capacity and the policy's host memory.
  std::vector<StepResult> train(const Policy& policy, int steps, Recording recording);
  /// Measures the cost of tracing such steps.
  TracingCost tracing_cost(const Policy& policy);

  /// Returns the GPU memory in use outside the allocator now; nullopt: there is no GPU, or it is virtual and
  /// has nothing else.
  std::optional<Bytes> used_beside_allocator() const;
  /// Returns the device capacity of the measured steps; nullopt: that of the machine.
  std::optional<Bytes> capacity() const;
  /// Returns an error if the data on the device before a step already exceed its capacity. A caching
  /// allocator would not notice, since it does not ask the device again for memory that it holds.
  std::optional<OutOfMemory> refusal_beforehand();

 private:
  void load();
  void place_model();
  void make_offloader();
  void learn_uses();
  void choose_checkpointed();
  void cut_into_slices();
  Bytes slice_weight_bytes() const;
  void check_checkpointed();
  void record();
  RecordedPass record_dense(const RecordedPass& offload_pass);
  RecordedPass record_pass(const Policy& policy);
  void note_disk(DiskLink disk);
  void calibrate_times();
  StepCalibration measure_costs();
  void set_marked_times(const Calibration& calibration);
  void note_factor(std::optional<double> factor);
  void fit(StepProgram& program, const Calibration& calibration, const Policy& policy,
           Nanoseconds compute_ns);
  Nanoseconds dense_compute_ns();
  void note_allocator_state(StepProgram& program, const RecordedPass& last);
  void set_limits(const Policy& policy);
  std::optional<Bytes> host_capacity(const Policy& policy) const;
  void make_transforms();
  void profile_transforms();
  void find_recomputations();
  StepGuide guide_for(const Policy& policy) const;

  const RunRequest& request_;
  Device& device_;
  const Progress& progress_;
  Model model_;
  Trace trace_;
  std::optional<ParameterOffloader> offloader_;
  std::optional<Trainer> trainer_;
  std::vector<SavedId> order_;
  std::vector<std::shared_ptr<const Transform>> transforms_;  ///< named by the request's rules
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>>
      recomputations_;                          ///< by Recipe::tensor
  std::optional<Policy> last_policy_;           ///< the policy of the current limits
  std::optional<GradientReference> reference_;  ///< gradients of plain autograd
  /// Waits at the end, since parameters may still be copied to memory that is freed with the model.
  IdleAtEnd idle_at_end_;
};

/// Removes the limits of a job's steps for work outside of them.
void lift_limits(Device& device);

}  // namespace offprof
