// A model in shards, under every kind of policy, on every device.
#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include "engine/shards/sharded_pass.h"
#include "tests/hazards/hazard_fixture.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using torch::jit::Module;

/// Draws random numbers, and has buffers.
Module layer_on(c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  Module module("Layer");
  module.register_buffer("mean", at::zeros({8}, options));
  module.register_buffer("variance", at::ones({8}, options));
  module.define(R"(
def forward(self, x, w):
    y = torch.dropout(torch.exp(x.mm(w).mm(w.t()) * 0.01), 0.5, True)
    return torch.batch_norm(y, None, None, self.mean, self.variance, True, 0.1, 1e-5, False)
)");
  return module;
}

/// Values cross its cuts in several ways; `w` is used everywhere.
Module model_on(c10::Device device) {
  Module model("Model");
  model.register_module("first", layer_on(device));
  model.register_module("last", layer_on(device));
  model.define(R"(
def forward(self, x, w):
    y = self.first.forward(x * 2, w)
    z = self.last.forward(torch.tanh(y), w)
    u = self.first.forward(z * y, w)
    return (self.last.forward(u, w) * z + u * y[0:1]).sum()
)");
  return model;
}

class ShardHazards : public HazardTest, public testing::WithParamInterface<std::tuple<std::string, int>> {
 protected:
  void SetUp() override {
    open(std::get<0>(GetParam()));
    if (IsSkipped()) return;
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::getProfilingMode() = false;
    const c10::Device torch_device = device().torch_device();
    model_ = model_on(torch_device);
    const Graph graph(torch_device);
    shards_.emplace(model_, microbatches(graph).front(), 4, torch_device);
  }
  void TearDown() override {
    shards_.reset();
    model_ = Module("None");
    HazardTest::TearDown();
  }

  static std::vector<std::vector<c10::IValue>> microbatches(const Graph& g) {
    const int count = std::get<1>(GetParam());
    std::vector<std::vector<c10::IValue>> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back({g.x.slice(0, i, std::nullopt, count), g.w});
    return inputs;
  }

  std::vector<at::Tensor> sharded_gradients(const std::optional<Policy>& policy) {
    return gradients([&](Graph& g) { ShardedStep(*shards_, microbatches(g)).run(); }, policy);
  }
  std::vector<at::Tensor> plain_gradients() {
    return gradients(
        [&](Graph& g) {
          const auto inputs = microbatches(g);
          MicrobatchRandom random(static_cast<std::int64_t>(inputs.size()), device().torch_device());
          for (std::size_t i = 0; i < inputs.size(); ++i) {
            const MicrobatchRandom::Turn turn(random, i);
            model_.forward(inputs[i]).toTensor().backward();
          }
        },
        std::nullopt);
  }

  struct ShardedStep {
    ShardedStep(const Shards& shards, std::vector<std::vector<c10::IValue>> inputs)
        : pass(shards, std::move(inputs)) {}
    void run() {
      std::vector<at::Tensor> losses;
      for (const c10::IValue& result : pass.forward()) losses.push_back(result.toTensor());
      pass.backward(losses);
    }
    ShardedPass pass;
  };

  Module model_{"None"};
  std::optional<Shards> shards_;
};

TEST_P(ShardHazards, HaveTheGradientsOfPlainAutogradAndLeaveNothing) {
  const std::vector<at::Tensor> expected = plain_gradients();
  expect_equal(sharded_gradients(std::nullopt), expected);
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left([&] { expect_equal(sharded_gradients(policy), expected); });
  }
}

TEST_P(ShardHazards, AForwardWithoutBackwardLeavesNothing) {
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left(
        [&] { gradients([&](Graph& g) { ShardedPass(*shards_, microbatches(g)).forward(); }, policy); });
  }
}

/// An edit of what a shard took, between forward and backward: in the middle of a backward, after others.
TEST_P(ShardHazards, AnErrorInTheMiddleOfBackwardLeavesNothing) {
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left([&] {
      const std::string message = message_of([&] {
        gradients(
            [&](Graph& g) {
              const at::Tensor x = g.x * 1;
              auto inputs = microbatches(g);
              inputs.back().front() = x;
              ShardedPass pass(*shards_, inputs);
              std::vector<at::Tensor> losses;
              for (const c10::IValue& result : pass.forward()) losses.push_back(result.toTensor());
              x.mul_(2);
              pass.backward(losses);
            },
            policy);
      });
      EXPECT_THAT(message, HasSubstr("modified by an inplace operation"));
    });
  }
  expect_equal(sharded_gradients(hazard_policies().front()), plain_gradients());
}

INSTANTIATE_TEST_SUITE_P(, ShardHazards,
                         testing::Combine(testing::ValuesIn(devices_under_test()), testing::Values(1, 2)),
                         [](const auto& test) {
                           return "Microbatches" + std::to_string(std::get<1>(test.param)) + "_" +
                                  std::get<0>(test.param);
                         });

}  // namespace
}  // namespace offprof
