#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/device.h"
#include "engine/host_memory.h"
#include "engine/model.h"
#include "engine/plugin.h"
#include "engine/weights/weight_pager.h"
#include "profiler/calibration.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/gradient_check.h"
#include "profiler/trainer.h"
#include "traces/trace.h"

namespace offprof {

/// A model loaded and recorded on a device, ready for steps under any policy.
class Job {
 public:
  /// `request`, `device`, `progress` and `tracing` must outlive it. `tracing`: of the device's GPU; nullptr:
  /// nothing is traced. Throws Error: what was asked for cannot be recorded.
  Job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing = nullptr);

  /// The model, its environment and its program; nothing measured.
  const Trace& trace() const { return trace_; }

  /// Gradients against plain autograd's.
  GradientCheck check_gradients(const Policy& policy);
  /// The gradients that check_gradients compares with lie in device memory: not while steps are measured.
  void forget_gradients() { reference_->forget(); }

  /// Steps under `policy` within the device's capacity and the policy's host memory.
  std::vector<StepResult> train(const Policy& policy, int steps, Recording recording);
  /// What tracing makes of such steps.
  TracingCost tracing_cost(const Policy& policy);

  /// Of a GPU, now; nullopt: there is none, and a virtual one has nothing beside.
  std::optional<Bytes> used_beside_allocator() const;
  /// Of the measured steps; nullopt: what the machine has.
  std::optional<Bytes> capacity() const;
  /// Where what lies on the device before a step is more than its capacity already: that. A caching allocator
  /// would not ask the device for what it holds, and so be refused nothing.
  std::optional<OutOfMemory> refusal_beforehand();

 private:
  void load();
  void place_model();
  void make_pager();
  void learn_uses();
  void choose_segments();
  void cut_into_shards();
  Bytes shard_weight_bytes() const;
  void check_segments();
  void record();
  RecordedPass record_dense(const RecordedPass& offload_pass);
  RecordedPass record_pass(const Policy& policy);
  void note_disk(DiskLink disk);
  void calibrate_times();
  StepCalibration measure_costs();
  void set_marked_times(const Calibration& calibration);
  void note_factor(std::optional<double> factor);
  void fit(Program& program, const Calibration& calibration, const Policy& policy, Nanoseconds compute_ns);
  Nanoseconds dense_compute_ns();
  void note_allocator_state(Program& program, const RecordedPass& last);
  void set_limits(const Policy& policy);
  std::optional<Bytes> host_capacity(const Policy& policy) const;
  void make_transforms();
  void profile_transforms();
  void find_recipes();
  StepGuide guide_for(const Policy& policy) const;

  const RunRequest& request_;
  Device& device_;
  const Progress& progress_;
  Model model_;
  Trace trace_;
  std::optional<WeightPager> pager_;
  std::optional<Trainer> trainer_;
  std::vector<SavedId> order_;
  std::vector<std::shared_ptr<const Transform>> transforms_;  ///< that the request's rules name
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecipe>> recipes_;  ///< by Recipe::tensor
  std::optional<Policy> last_policy_;           ///< that limits were set for
  std::optional<GradientReference> reference_;  ///< gradients of plain autograd
  IdleAtEnd idle_at_end_;  ///< weights may be on their way to memory that goes with the model
};

/// What a job's steps keep to, and what is done beside them does not.
void lift_limits(Device& device);

}  // namespace offprof
