// Submodules that run again in backward, under every kind of policy, on every device.
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include "engine/modules/segments.h"
#include "tests/hazards/hazard_fixture.h"

namespace offprof {
namespace {

using torch::jit::Module;

/// Draws random numbers, writes a buffer, and hands out two tensors that need gradients and one that doesn't.
Module noisy_layer(c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  Module module("Noisy");
  module.register_buffer("mean", at::zeros({6}, options));
  module.register_buffer("variance", at::ones({6}, options));
  module.register_buffer("count", at::zeros({}, options));
  module.define(R"(
def forward(self, x, w):
    self.count.add_(1)
    y = torch.dropout(torch.exp(x.mm(w) * 0.1), 0.5, True)
    y = torch.batch_norm(y, None, None, self.mean, self.variance, True, 0.1, 1e-5, False)
    return y, torch.tanh(x), y > 0
)");
  return module;
}

class SegmentHazards : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    open(GetParam());
    if (IsSkipped()) return;
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::getProfilingMode() = false;
    model_ = Module("Model");
    model_.register_module("first", noisy_layer(device().torch_device()));
    model_.register_module("last", noisy_layer(device().torch_device()));
    model_.define(R"(
def forward(self, x, w):
    y, z, mask = self.first.forward(x * 2, w)
    y, z, mask = self.last.forward(z * (y.sum() * 0.01 + 1), w)
    return (y * mask).sum() + (z * z).sum()
)");
    segments_.emplace(model_, std::vector<std::string>{"*"}, device().torch_device());
  }
  void TearDown() override {
    segments_.reset();
    model_ = Module("None");
    HazardTest::TearDown();
  }

  std::vector<at::Tensor> gradients_under(const std::optional<Policy>& policy) {
    return gradients([&](Graph& g) { model_.forward({g.x, g.w}).toTensor().backward(); }, policy);
  }
  std::vector<at::Tensor> plain_gradients() {
    const Segments::Off off(*segments_);
    return gradients_under(std::nullopt);
  }
  /// How many batches each of the layers has seen.
  double batches() {
    double count = 0;
    for (const char* name : {"first", "last"})
      count += model_.attr(name).toModule().attr("count").toTensor().item<double>();
    return count / 2;
  }

  Module model_{"None"};
  std::optional<Segments> segments_;
};

TEST_P(SegmentHazards, HaveTheGradientsOfPlainAutogradAndLeaveNothing) {
  const std::vector<at::Tensor> expected = plain_gradients();
  expect_equal(gradients_under(std::nullopt), expected);
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left([&] { expect_equal(gradients_under(policy), expected); });
  }
}

TEST_P(SegmentHazards, SeeABatchOnce) {
  const double before = batches();
  gradients_under(hazard_policies().front());
  EXPECT_EQ(batches(), before + (has_values() ? 1 : 0));
}

TEST_P(SegmentHazards, LeaveTheRandomNumbersOfTheDeviceWherePlainAutogradDoes) {
  const c10::Device torch_device = device().torch_device();
  if (torch_device.is_cpu()) GTEST_SKIP() << "the CPU's are compared in engine/modules/segments_test.cpp";
  const auto offset = [&] { return at::globalContext().defaultGenerator(torch_device).get_offset(); };
  plain_gradients();
  const std::uint64_t expected = offset();
  EXPECT_GT(expected, 0U);
  gradients_under(hazard_policies().front());
  EXPECT_EQ(offset(), expected);
}

INSTANTIATE_TEST_SUITE_P(, SegmentHazards, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof
