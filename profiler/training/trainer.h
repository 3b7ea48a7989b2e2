#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "engine/models/model.h"
#include "engine/parameters/parameter_offloader.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/recording/step_mark.h"
#include "profiler/recording/step_result.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

class MarkingListener;

/// Amount of recording in a step. Recording costs time.
enum class Recording {
  kNone,      ///< nothing: for reported times
  kTimeline,  ///< operators, allocations, saved tensors, commands
  kProgram,   ///< the same, and the ends of autograd nodes
};

/// Trains a model step by step. A step sets the gradients to none and runs forward, loss, backward and the
/// optimiser. A measured or recorded step sets the gradients to none again at its end, as the next step
/// would.
class Trainer {
 public:
  /// `model`, `device`, `tracing` and `pager` must outlive the trainer. `settings.optimizer` is none, sgd or
  /// adamw. `tracing` is for the device's GPU and steps recorded for a timeline; nullptr: none. `pager`
  /// offloads the model's parameters; nullptr: they stay on the device.
  Trainer(Model& model, Device& device, const RunSettings& settings, StepTracing* tracing = nullptr,
          ParameterOffloader* offloader = nullptr);

  /// Runs a step as plain autograd does it, with parameter offload, activation checkpointing and layer
  /// slices, but no other part of the engine.
  void plain_step();
  /// Runs a step under `policy`. `guide` comes from a step recorded before, or is empty. `listener` listens
  /// to a step that is not recorded; nullptr: nobody listens.
  StepResult step(const Policy& policy, const StepGuide& guide, Recording recording,
                  StepListener* listener = nullptr) {
    const bool is_traced = recording == Recording::kTimeline;
    return run_step(policy, guide, recording, listener,
                    is_traced ? std::optional(TraceDetail::kAll) : std::nullopt);
  }
  /// Runs a step that is not recorded but traced, if the GPU can be traced.
  StepResult traced_step(const Policy& policy, const StepGuide& guide, TraceDetail detail) {
    return run_step(policy, guide, Recording::kNone, nullptr, detail);
  }
  /// Runs a step with nothing offloaded that is not recorded but marked.
  StepMarks marked_step();
  /// Runs a step that is recorded for a timeline but not traced.
  StepResult recorded_step(const Policy& policy, const StepGuide& guide) {
    return run_step(policy, guide, Recording::kTimeline, nullptr, std::nullopt);
  }
  /// Returns the gradients of forward and backward without the optimiser, from a fixed seed; restores the
  /// buffers afterwards. One entry per parameter, undefined if backward gave none. `policy` nullopt: plain
  /// autograd, without activation checkpointing and layer slices.
  std::vector<at::Tensor> gradients(const std::optional<Policy>& policy, const StepGuide& guide);
  /// Returns the tensors that its steps treat as older than themselves.
  std::shared_ptr<const Residents> residents() const;

 private:
  /// Runs a step. `traced` nullopt: it is not traced. `marks` also records the phases, and is then the
  /// listener.
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
  ParameterOffloader* offloader_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;  ///< null if the optimiser is none
};

}  // namespace offprof
