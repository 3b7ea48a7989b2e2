#pragma once

#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <functional>
#include <string>
#include <vector>

#include "engine/checkpointing/checkpointed_modules.h"
#include "tests/support/torch_test.h"

namespace offprof {

using at::Tensor;
using torch::jit::Module;

inline constexpr const char* kLinear = R"(
def forward(self, x):
    return torch.sigmoid(torch.linear(torch.tanh(x), self.weight))
)";
inline constexpr const char* kDropout = R"(
def forward(self, x):
    return torch.dropout(torch.linear(torch.exp(x * 0.1), self.weight), 0.5, True)
)";
inline constexpr const char* kNorm = R"(
def forward(self, x):
    self.count.add_(1)
    return torch.batch_norm(torch.linear(x, self.weight), self.scale, self.shift, self.mean, self.variance, True,
                            0.1, 1e-5, True) * 2
)";
/// Forward of a stack of two layers.
inline constexpr const char* kInTurn = R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x)).pow(2).sum()
)";

/// Returns a module with a weight [4,4], the tensors of batch norm, and a flag. `code` is its forward.
inline Module layer(const std::string& code) {
  Module module("Layer");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_attribute("flag", c10::BoolType::get(), false);
  module.register_parameter("weight", at::randn({4, 4}, at::kDouble).set_requires_grad(true), false);
  module.register_parameter("scale", at::ones({4}, at::kDouble).set_requires_grad(true), false);
  module.register_parameter("shift", at::zeros({4}, at::kDouble).set_requires_grad(true), false);
  module.register_buffer("mean", at::zeros({4}, at::kDouble));
  module.register_buffer("variance", at::ones({4}, at::kDouble));
  module.register_buffer("count", at::zeros({}, at::kLong));
  module.define(code);
  return module;
}

/// Returns another module of the same class.
inline Module copy_of(const Module& module) {
  const at::NoGradGuard no_grad;
  return module.deepcopy();
}

/// Returns a model with two layers, `first` and `last`.
inline Module model_of(const Module& first, const Module& last, const std::string& code = kInTurn) {
  Module model("Model");
  model.register_attribute("training", c10::BoolType::get(), true);
  model.register_module("first", first);
  model.register_module("last", last);
  model.define(code);
  return model;
}

/// The result of a step.
struct Outcome {
  std::vector<Tensor> gradients;
  std::vector<Tensor> buffers;
  Tensor next_random_numbers;
};

inline void expect_equal(const Outcome& actual, const Outcome& expected) {
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (std::size_t i = 0; i < expected.gradients.size(); ++i)
    EXPECT_TRUE(bitwise_equal(actual.gradients[i], expected.gradients[i])) << "gradient " << i;
  for (std::size_t i = 0; i < expected.buffers.size(); ++i)
    EXPECT_TRUE(bitwise_equal(actual.buffers[i], expected.buffers[i])) << "buffer " << i;
  EXPECT_TRUE(bitwise_equal(actual.next_random_numbers, expected.next_random_numbers));
}

class CheckpointingTest : public TorchTest {
 protected:
  using Train = std::function<void(Module&, const Tensor&)>;

  /// Uses the TorchScript settings of a job.
  CheckpointingTest() {
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::getProfilingMode() = false;
  }

  static void train(Module& model, const Tensor& x) { model.forward({x}).toTensor().backward(); }

  /// Returns the gradients of the input and the parameters, from the same start each time.
  Outcome outcome(Module& model, const Train& work) {
    at::manual_seed(kSeed);
    const at::NoGradGuard no_grad;
    const Tensor x = at::randn({3, 4}, at::kDouble).set_requires_grad(true);
    for (Tensor buffer : model.buffers()) buffer.fill_(1);
    for (Tensor parameter : model.parameters()) parameter.mutable_grad() = Tensor();
    {
      const at::AutoGradMode grad(true);
      work(model, x);
    }
    Outcome result;
    result.gradients.push_back(x.grad());
    for (const Tensor& parameter : model.parameters()) result.gradients.push_back(parameter.grad());
    for (const Tensor& buffer : model.buffers()) result.buffers.push_back(buffer.clone());
    result.next_random_numbers = at::rand({4}, at::kDouble);
    return result;
  }

  Outcome without(CheckpointedModules& checkpointed, Module& model, const Train& work = train) {
    const CheckpointedModules::Off off(checkpointed);
    return outcome(model, work);
  }

  /// Expects that a step of the model has the same outcome with and without checkpointed modules, under every
  /// policy.
  void expect_as_without(Module& model, const std::vector<std::string>& patterns, const Train& work = train) {
    CheckpointedModules checkpointed(model, patterns, at::kCPU);
    const Outcome expected = without(checkpointed, model, work);
    expect_equal(outcome(model, work), expected);
    for (const Policy& policy : {test_policy("offload", 0, 0), test_policy("trl", 0, 0)})
      expect_equal(
          outcome(model, [&](Module& same, const Tensor& x) { run_step(policy, [&] { work(same, x); }); }),
          expected);
    EXPECT_THAT(checkpointed.uncalled(), testing::IsEmpty());
  }

  Module model_ = model_of(layer(kLinear), layer(kLinear));
};

}  // namespace offprof
