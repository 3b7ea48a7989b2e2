#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/models/model.h"
#include "engine/slices/sliced_pass.h"

namespace offprof {

/// Forward, loss and backward of a step, in the model's layer slices if it has some.
class TrainingPass {
 public:
  /// `model` must outlive it. `loss`: see loss_of; with micro-batches the loss is their mean.
  TrainingPass(Model& model, std::string loss);

  /// Runs forward and computes the losses. Throws the exceptions of run_forward and loss_of.
  void forward();
  /// Runs backward. Call after `forward`.
  void backward();

 private:
  std::vector<c10::IValue> run_slices();

  Model& model_;
  std::string loss_;
  std::unique_ptr<SlicedPass> sliced_;  ///< null: the model has no layer slices
  std::vector<at::Tensor> losses_;      ///< by micro-batch
};

/// Computes the gradients that a TrainingPass must give, by autograd alone: without activation checkpointing,
/// without layer slices, one micro-batch after another.
void accumulate_gradients_plainly(Model& model, const std::string& loss);

}  // namespace offprof
