#include "profiler/training/optimizer.h"

#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include "profiler/plugin/optimizer_settings.h"
#include "profiler/training/lean_optimizers.h"

namespace offprof {
namespace {

/// PyTorch's default for AdamW, and a cautious value for SGD: the steps only serve to be profiled.
constexpr double kLearningRate = 1e-3;
constexpr double kMomentum = 0.9;

/// An optimizer of LibTorch.
class TorchOptimizer final : public Optimizer {
 public:
  explicit TorchOptimizer(std::unique_ptr<torch::optim::Optimizer> optimizer)
      : optimizer_(std::move(optimizer)) {}

  void step() override { optimizer_->step(); }

  std::vector<at::Tensor> states_of(const at::Tensor& parameter) const override {
    const auto& states = optimizer_->state();
    const auto state = states.find(parameter.unsafeGetTensorImpl());
    if (state == states.end()) return {};
    if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(state->second.get()))
      return {adamw->exp_avg(), adamw->exp_avg_sq()};
    if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(state->second.get()))
      return {sgd->momentum_buffer()};
    return {};
  }

 private:
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

bool is_plain_adamw(const OptimizerSettings& settings) {
  return settings.state == StatePrecision::kOfParameter && !settings.has_master;
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const std::string& name,
                                          const std::vector<at::Tensor>& parameters) {
  const OptimizerSettings settings = parse_optimizer(name);
  switch (settings.kind) {
    case OptimizerKind::kNone:
      return nullptr;
    case OptimizerKind::kSgd: {
      const auto options =
          torch::optim::SGDOptions(kLearningRate).momentum(settings.has_momentum ? kMomentum : 0);
      return std::make_unique<TorchOptimizer>(std::make_unique<torch::optim::SGD>(parameters, options));
    }
    case OptimizerKind::kAdamW:
      if (!is_plain_adamw(settings)) return make_lean_adamw(settings, parameters, kLearningRate);
      return std::make_unique<TorchOptimizer>(
          std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(kLearningRate)));
    case OptimizerKind::kAdafactor:
      return make_adafactor(parameters);
  }
  return nullptr;
}

}  // namespace offprof
