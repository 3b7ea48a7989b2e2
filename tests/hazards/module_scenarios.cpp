#include "tests/hazards/module_scenarios.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <optional>
#include <string>
#include <thread>

#include "engine/autograd/autograd_engine.h"
#include "engine/checkpointing/checkpointed_modules.h"

namespace offprof {
namespace {

using torch::jit::Module;

/// Makes TorchScript run operators one by one as they are written, as offprof runs models.
void run_models_as_written() {
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::getProfilingMode() = false;
}

Module module_with_statistics(const char* name, std::int64_t features, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  Module module(name);
  module.register_buffer("mean", at::zeros({features}, options));
  module.register_buffer("variance", at::ones({features}, options));
  module.register_buffer("count", at::zeros({}, options));
  return module;
}

Module noisy_layer(c10::Device device) {
  Module module = module_with_statistics("Noisy", 6, device);
  module.define(R"(
def forward(self, x, w):
    self.count.add_(1)
    y = torch.dropout(torch.exp(x.mm(w) * 0.1), 0.5, True)
    y = torch.batch_norm(y, None, None, self.mean, self.variance, True, 0.1, 1e-5, False)
    return y, torch.tanh(x), y > 0
)");
  return module;
}

Module square_layer(c10::Device device) {
  Module module = module_with_statistics("Layer", 8, device);
  module.define(R"(
def forward(self, x, w):
    y = torch.dropout(torch.exp(x.mm(w).mm(w.t()) * 0.01), 0.5, True)
    return torch.batch_norm(y, None, None, self.mean, self.variance, True, 0.1, 1e-5, False)
)");
  return module;
}

Module model_of(const Module& first, const Module& last, const char* forward) {
  run_models_as_written();
  Module model("Model");
  model.register_module("first", first);
  model.register_module("last", last);
  model.define(forward);
  return model;
}

// --- Activation checkpointing ---

Scenario over_checkpointed(const LossScenario& scenario) {
  const auto runner = [run = scenario.run](bool has_checkpointed) {
    return [run, has_checkpointed](Graph& g) {
      Module model = model_for_checkpointing(g.x.device());
      std::optional<CheckpointedModules> checkpointed;
      if (has_checkpointed) checkpointed.emplace(model, std::vector<std::string>{"*"}, g.x.device());
      run(g, [&](Graph& of, double scale) { return model.forward({of.x * scale, of.w}).toTensor(); });
    };
  };
  return {.name = std::string("Checkpointed") + scenario.name,
          .run = runner(true),
          .plain = runner(false),
          .asks_again = scenario.asks_again,
          .starts_threads = scenario.starts_threads,
          .can_recompute = scenario.can_recompute};
}

// --- Layer slices ---

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::vector<Tensor> forward() = 0;
  virtual void backward(const std::vector<Tensor>& losses) = 0;
};
using MakePass = std::function<std::unique_ptr<Pass>()>;

class PassInSlices final : public Pass {
 public:
  PassInSlices(const LayerSlices& slices, std::vector<std::vector<c10::IValue>> inputs)
      : pass_(slices, std::move(inputs)) {}
  std::vector<Tensor> forward() override { return run_forward(pass_); }
  void backward(const std::vector<Tensor>& losses) override { pass_.backward(losses); }

 private:
  SlicedPass pass_;
};

class PlainPass final : public Pass {
 public:
  PlainPass(Module model, std::vector<std::vector<c10::IValue>> inputs, c10::Device device)
      : model_(std::move(model)),
        inputs_(std::move(inputs)),
        random_(static_cast<std::int64_t>(inputs_.size()), device) {}
  std::vector<Tensor> forward() override {
    std::vector<Tensor> losses;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const MicrobatchRandom::Turn turn(random_, i);
      losses.push_back(model_.forward(inputs_[i]).toTensor());
    }
    return losses;
  }
  void backward(const std::vector<Tensor>& losses) override {
    for (const Tensor& loss : losses) loss.backward();
  }

 private:
  Module model_;
  std::vector<std::vector<c10::IValue>> inputs_;
  MicrobatchRandom random_;
};

void one_pass(const MakePass& make) {
  const auto pass = make();
  pass->backward(pass->forward());
}

void two_passes(const MakePass& make) {
  one_pass(make);
  one_pass(make);
}

void a_pass_within_another(const MakePass& make) {
  const auto outer = make();
  const std::vector<Tensor> losses = outer->forward();
  one_pass(make);
  outer->backward(losses);
}

void a_dropped_pass_between(const MakePass& make) {
  const auto used = make();
  const std::vector<Tensor> losses = used->forward();
  make()->forward();
  used->backward(losses);
}

void a_pass_without_gradients_between(const MakePass& make) {
  const auto used = make();
  const std::vector<Tensor> losses = used->forward();
  {
    const at::NoGradGuard no_grad;
    make()->forward();
  }
  used->backward(losses);
}

void a_forward_alone(const MakePass& make) {
  make()->forward();
}

void a_backward_from_another_thread(const MakePass& make) {
  const auto pass = make();
  const std::vector<Tensor> losses = pass->forward();
  std::thread([&] { pass->backward(losses); }).join();
}

struct SliceScenario {
  const char* name;
  void (*run)(const MakePass& make);
  bool starts_threads = false;
};

Scenario over_slices(const SliceScenario& scenario, int microbatches) {
  const auto in_slices = [run = scenario.run, microbatches](Graph& g) {
    const Module model = model_for_slices(g.x.device());
    const LayerSlices slices = cut_for(model, g, microbatches);
    run([&] { return std::make_unique<PassInSlices>(slices, microbatches_of(g, microbatches)); });
  };
  const auto plain = [run = scenario.run, microbatches](Graph& g) {
    const Module model = model_for_slices(g.x.device());
    run([&] { return std::make_unique<PlainPass>(model, microbatches_of(g, microbatches), g.x.device()); });
  };
  return {.name = std::string(scenario.name) + "InLayerSlices" + (microbatches > 1 ? "AndMicrobatches" : ""),
          .run = in_slices,
          .plain = plain,
          .starts_threads = scenario.starts_threads,
          .can_recompute = false};
}

constexpr SliceScenario kSliceScenarios[] = {
    {"APass", one_pass},
    {"TwoPasses", two_passes},
    {"APassWithinAnother", a_pass_within_another},
    {"ADroppedPassBetween", a_dropped_pass_between},
    {"APassWithoutGradientsBetween", a_pass_without_gradients_between},
    {"AForwardAlone", a_forward_alone},
    {"ABackwardFromAnotherThread", a_backward_from_another_thread, true},
};

}  // namespace

Module model_for_checkpointing(c10::Device device) {
  return model_of(noisy_layer(device), noisy_layer(device), R"(
def forward(self, x, w):
    y, z, mask = self.first.forward(x * 2, w)
    y, z, mask = self.last.forward(z * (y.sum() * 0.01 + 1), w)
    return (y * mask).sum() + (z * z).sum()
)");
}

Module model_for_slices(c10::Device device) {
  return model_of(square_layer(device), square_layer(device), R"(
def forward(self, x, w):
    y = self.first.forward(x * 2, w)
    z = self.last.forward(torch.tanh(y), w)
    u = self.first.forward(z * y, w)
    return (self.last.forward(u, w) * z + u * y[0:1]).sum()
)");
}

std::vector<std::vector<c10::IValue>> microbatches_of(const Graph& g, int count) {
  std::vector<std::vector<c10::IValue>> inputs;
  for (int i = 0; i < count; ++i) inputs.push_back({g.x.slice(0, i, std::nullopt, count), g.w});
  return inputs;
}

LayerSlices cut_for(const Module& model, const Graph& g, int microbatches) {
  const CurrentStep nobodys(nullptr);
  return {model, microbatches_of(g, microbatches).front(), 4, g.x.device()};
}

std::vector<Tensor> run_forward(SlicedPass& pass) {
  std::vector<Tensor> losses;
  for (const c10::IValue& result : pass.forward()) losses.push_back(result.toTensor());
  return losses;
}

std::vector<Scenario> module_scenarios() {
  std::vector<Scenario> scenarios;
  for (const LossScenario& each : loss_scenarios()) scenarios.push_back(over_checkpointed(each));
  for (const SliceScenario& each : kSliceScenarios)
    for (const int microbatches : {1, 2}) scenarios.push_back(over_slices(each, microbatches));
  return scenarios;
}

}  // namespace offprof
