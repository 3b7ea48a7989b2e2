#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "engine/models/model.h"
#include "engine/parameters/parameter_offloader.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/recording/step_result.h"
#include "profiler/steps/measured_step.h"
#include "profiler/steps/step_order.h"
#include "profiler/training/optimizer.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Trains a model step by step. A step sets the gradients to none and runs forward, loss, backward and the
/// optimiser. A measured or recorded step sets the gradients to none again at its end, as the next step
/// would. The end of a step throws Error (input) if the device cannot predict the model (take_model_refusal).
class Trainer {
 public:
  /// `model`, `device`, `tracing` and `offloader` must outlive the trainer. `settings.optimizer`: see
  /// make_optimizer. `tracing` is for the device's GPU and steps recorded for a timeline; nullptr: none.
  /// `offloader` offloads the model's parameters; nullptr: they stay on the device.
  Trainer(Model& model, Device& device, const RunSettings& settings, StepTracing* tracing = nullptr,
          ParameterOffloader* offloader = nullptr);

  /// Runs a step as plain autograd does it, with parameter offload, activation checkpointing and layer
  /// slices, but no other part of the engine.
  void plain_step();
  /// Runs the ordered step.
  StepResult run(const StepOrder& order);
  /// Runs a step under `policy`; one that is recorded for a timeline is traced as well.
  StepResult step(const Policy& policy, const StepGuide& guide, Recording recording,
                  StepListener* listener = nullptr) {
    const bool is_traced = recording == Recording::kTimeline;
    return run(
        {policy, guide, recording, listener, is_traced ? std::optional(TraceDetail::kAll) : std::nullopt});
  }
  /// Returns the gradients of forward and backward without the optimiser, from a fixed seed; restores the
  /// buffers afterwards. One entry per parameter, undefined if backward gave none. `policy` nullopt: plain
  /// autograd, without activation checkpointing and layer slices.
  std::vector<at::Tensor> gradients(const std::optional<Policy>& policy, const StepGuide& guide);
  /// Returns the size of what the optimizer keeps so far.
  OptimizerMemory optimizer_memory() const;
  /// Returns the tensors that its steps treat as older than themselves.
  std::shared_ptr<const Residents> residents() const;

 private:
  void train(MeasuredStep& measured);
  void add_parameter_traffic(StepResult& result);
  void forward_and_backward();
  void accumulate_gradients(const std::optional<Policy>& policy, const StepGuide& guide);
  std::vector<at::Tensor> gradients_on_host() const;
  void set_gradients_to_none();
  void refuse_unpredictable_model();
  void end_offloaded_step();

  Model& model_;
  Device& device_;
  std::string loss_;
  std::uint64_t seed_;
  StepTracing* tracing_;
  ParameterOffloader* offloader_;
  std::unique_ptr<Optimizer> optimizer_;  ///< null if the optimiser is none
};

}  // namespace offprof
