#include "profiler/training/optimizer.h"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// PyTorch's default for AdamW, and a cautious value for SGD: the steps only serve to be profiled.
constexpr double kLearningRate = 1e-3;

}  // namespace

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<at::Tensor>& parameters) {
  if (name == "none") return nullptr;
  if (name == "sgd")
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(kLearningRate));
  if (name == "adamw")
    return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(kLearningRate));
  throw input_error("unknown optimizer '" + name + "'", "the optimizers are none, sgd and adamw");
}

std::vector<at::Tensor> moments_of(const torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  const auto& states = optimizer.state();
  const auto state = states.find(parameter.unsafeGetTensorImpl());
  if (state == states.end()) return {};
  const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(state->second.get());
  if (adamw == nullptr) return {};
  return {adamw->exp_avg(), adamw->exp_avg_sq()};
}

}  // namespace offprof
