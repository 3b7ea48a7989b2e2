#include "engine/models/training_pass.h"

#include <optional>
#include <utility>

namespace offprof {
namespace {

std::vector<std::vector<c10::IValue>> microbatches_of(const Model& model) {
  return cut_into_microbatches(model.inputs, model.microbatches);
}

/// Divides a micro-batch's loss by their number, so that the sum is the mean.
at::Tensor share_of(const at::Tensor& loss, const Model& model) {
  return model.microbatches == 1 ? loss : loss / model.microbatches;
}

}  // namespace

TrainingPass::TrainingPass(Model& model, std::string loss)
    : model_(model),
      loss_(std::move(loss)),
      sliced_(model.slices ? std::make_unique<SlicedPass>(*model.slices, microbatches_of(model)) : nullptr) {}

void TrainingPass::forward() {
  if (!sliced_) {
    losses_.push_back(loss_of(run_forward(model_, model_.inputs), loss_));
    return;
  }
  for (const c10::IValue& result : run_slices()) losses_.push_back(share_of(loss_of(result, loss_), model_));
}

std::vector<c10::IValue> TrainingPass::run_slices() {
  try {
    return sliced_->forward();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw forward_error(model_, microbatches_of(model_).front(), error);
  }
}

void TrainingPass::backward() {
  const std::vector<at::Tensor> losses = std::exchange(losses_, {});
  if (sliced_)
    sliced_->backward(losses);
  else
    losses.at(0).backward();
}

void accumulate_gradients_plainly(Model& model, const std::string& loss) {
  std::optional<CheckpointedModules::Off> off;
  if (model.checkpointed) off.emplace(*model.checkpointed);
  MicrobatchRandom random(model.microbatches, model.device());
  const auto microbatches = microbatches_of(model);
  for (std::size_t i = 0; i < microbatches.size(); ++i) {
    const MicrobatchRandom::Turn turn(random, i);
    share_of(loss_of(run_forward(model, microbatches[i]), loss), model).backward();
  }
}

}  // namespace offprof
