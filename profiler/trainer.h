#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/device.h"
#include "engine/model.h"
#include "engine/offload_step.h"
#include "engine/weights/weight_pager.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/step_mark.h"
#include "profiler/step_result.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

class MarkingListener;

/// How much of a step is noted. What is noted costs time.
enum class Recording {
  kNone,      ///< nothing: for the times that are reported
  kTimeline,  ///< operators, allocations, saved tensors, commands
  kProgram,   ///< that, and when autograd nodes end
};

/// Trains a model step by step. A step: gradients set to none, forward, loss, backward, optimiser. A step
/// that is measured or recorded sets them to none again when it is done, as the next one would.
class Trainer {
 public:
  /// `model`, `device`, `tracing` and `pager` must outlive it. `settings.optimizer`: none, sgd or adamw.
  /// `tracing`: of the device's GPU, for steps recorded for a timeline; nullptr: none. `pager`: has the
  /// model's parameters; nullptr: they stay on the device.
  Trainer(Model& model, Device& device, const RunSettings& settings, StepTracing* tracing = nullptr,
          WeightPager* pager = nullptr);

  /// A step as plain autograd does it: nothing of ours in the way but the pager, the model's segments and its
  /// shards.
  void plain_step();
  /// A step under `policy`. `guide`: of a step recorded before, or empty.
  /// `listener`: of a step that is not recorded; nullptr: nobody listens.
  StepResult step(const Policy& policy, const StepGuide& guide, Recording recording,
                  StepListener* listener = nullptr) {
    const bool is_traced = recording == Recording::kTimeline;
    return run_step(policy, guide, recording, listener,
                    is_traced ? std::optional(TraceDetail::kAll) : std::nullopt);
  }
  /// A step that is not recorded, but traced, where the GPU is.
  StepResult traced_step(const Policy& policy, const StepGuide& guide, TraceDetail detail) {
    return run_step(policy, guide, Recording::kNone, nullptr, detail);
  }
  /// A step with nothing offloaded, not recorded, but marked.
  StepMarks marked_step();
  /// A step that is recorded for a timeline, but not traced.
  StepResult recorded_step(const Policy& policy, const StepGuide& guide) {
    return run_step(policy, guide, Recording::kTimeline, nullptr, std::nullopt);
  }
  /// Gradients of forward and backward without the optimiser, from a fixed seed, with buffers put back after:
  /// by parameter, undefined where backward gave none. `policy` nullopt: plain autograd, without segments and
  /// shards.
  std::vector<at::Tensor> gradients(const std::optional<Policy>& policy, const StepGuide& guide);
  /// What its steps take for older than they are.
  std::shared_ptr<const Residents> residents() const;

 private:
  /// `traced`: nullopt: not. `marks`: also told of phases; it is the listener then.
  StepResult run_step(const Policy& policy, const StepGuide& guide, Recording recording,
                      StepListener* listener, std::optional<TraceDetail> traced,
                      MarkingListener* marks = nullptr);
  void forward_and_backward();
  void set_gradients_to_none();
  void end_pages();
  void adopt_optimizer_state();
  void begin_measuring();

  Model& model_;
  Device& device_;
  std::string loss_;
  std::uint64_t seed_;
  StepTracing* tracing_;
  WeightPager* pager_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  ///< none: null
};

}  // namespace offprof
