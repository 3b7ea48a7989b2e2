#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/model.h"
#include "engine/shards/sharded_pass.h"

namespace offprof {

/// Forward, loss and backward of a step, in the model's shards where it has some.
class TrainingPass {
 public:
  /// `model` must outlive it. `loss`: see loss_of; of micro-batches it is their mean.
  TrainingPass(Model& model, std::string loss);

  /// Throws as run_forward and loss_of do.
  void forward();
  /// After it.
  void backward();

 private:
  std::vector<c10::IValue> run_shards();

  Model& model_;
  std::string loss_;
  std::unique_ptr<ShardedPass> sharded_;  ///< null: in one
  std::vector<at::Tensor> losses_;        ///< by micro-batch
};

/// The gradients that a TrainingPass must give, by autograd alone: without segments, without shards, one
/// micro-batch after another.
void accumulate_gradients_plainly(Model& model, const std::string& loss);

}  // namespace offprof
