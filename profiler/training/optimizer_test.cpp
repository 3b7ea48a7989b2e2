#include "profiler/training/optimizer.h"

#include <gmock/gmock.h>
#include <torch/optim/adamw.h>

#include "profiler/training/lean_optimizers.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;

class OptimizerTest : public TorchTest {
 protected:
  static constexpr int kSteps = 5;

  /// Returns parameters of random values: one of more values than a block and not a multiple of it, and a
  /// small one. Equal for each call.
  static std::vector<Tensor> parameters(at::ScalarType type) {
    at::manual_seed(1);
    return {at::randn({70, 61}).to(type).requires_grad_(), at::randn({61}).to(type).requires_grad_()};
  }

  template <class Step>
  static void train(const std::vector<Tensor>& parameters, Step step) {
    at::manual_seed(2);
    for (int i = 0; i < kSteps; ++i) {
      for (Tensor parameter : parameters) parameter.mutable_grad() = at::randn_like(parameter).detach();
      step();
    }
  }

  static std::vector<Tensor> trained(const std::string& name, at::ScalarType type) {
    const std::vector<Tensor> values = parameters(type);
    const auto optimizer = make_optimizer(name, values);
    train(values, [&] { optimizer->step(); });
    return values;
  }

  static std::vector<Tensor> trained_by_torch() {
    const std::vector<Tensor> values = parameters(at::kFloat);
    torch::optim::AdamW optimizer(values, torch::optim::AdamWOptions(1e-3));
    train(values, [&] { optimizer.step(); });
    return values;
  }

  static Bytes bytes_of(const std::vector<Tensor>& tensors) {
    Bytes bytes = 0;
    for (const Tensor& tensor : tensors) bytes += static_cast<Bytes>(tensor.nbytes());
    return bytes;
  }
};

TEST_F(OptimizerTest, LeanAdamWUpdatesLikeLibTorchs) {
  const std::vector<Tensor> exact = trained_by_torch(), before = parameters(at::kFloat);
  for (const auto& [name, tolerance] : std::map<std::string, double>{{"adamw:state=fp32", 1e-6},
                                                                     {"adamw:master=fp32", 1e-6},
                                                                     {"adamw:state=bf16", 1e-3},
                                                                     {"adamw:state=8bit", 3e-3}}) {
    const std::vector<Tensor> lean = trained(name, at::kFloat);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      EXPECT_LT((lean[i] - exact[i]).abs().max().item<double>(), tolerance) << name << " " << i;
      EXPECT_GT((lean[i] - before[i]).abs().max().item<double>(), 2e-3) << name << " " << i;
    }
  }
}

TEST_F(OptimizerTest, MasterWeightsKeepUpdatesThatBfloat16Loses) {
  const std::vector<Tensor> values = parameters(at::kBFloat16);
  const auto optimizer = make_optimizer("adamw:state=fp32,master=fp32", values);
  train(values, [&] { optimizer->step(); });
  for (const Tensor& value : values) {
    const Tensor master = optimizer->master_of(value);
    ASSERT_EQ(master.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(master.view_as(value).to(at::kBFloat16), value));
    EXPECT_FALSE(at::equal(master.view_as(value), value.to(at::kFloat)));
  }
}

TEST_F(OptimizerTest, KeepsAsManyBytesAsItsNameSays) {
  constexpr Bytes kLarge = 70 * 61, kSmall = 61, kBlocks = (kLarge + kBlockValues - 1) / kBlockValues;
  const std::map<std::string, Bytes> large = {{"sgd", 0},
                                              {"sgd:momentum", 2 * kLarge},
                                              {"adamw", 2 * 2 * kLarge},
                                              {"adamw:state=fp32", 2 * 4 * kLarge},
                                              {"adamw:state=bf16", 2 * 2 * kLarge},
                                              {"adamw:state=8bit", 2 * (kLarge + 4 * kBlocks)},
                                              {"adafactor", 2 * (70 + 61)}};
  for (const auto& [name, bytes] : large) {
    const std::vector<Tensor> values = parameters(at::kBFloat16);
    const auto optimizer = make_optimizer(name, values);
    train(values, [&] { optimizer->step(); });
    EXPECT_EQ(bytes_of(optimizer->states_of(values[0])), bytes) << name;
    if (name == "adamw:state=8bit") {
      EXPECT_EQ(bytes_of(optimizer->states_of(values[1])), 2 * 4 * kSmall);
    }
  }
}

TEST_F(OptimizerTest, AdafactorUpdatesLikeTorchOptims) {
  // Values of torch.optim.Adafactor in Python, torch 2.11.
  const std::vector<Tensor> values = {
      at::tensor({0.5, -1.0, 2.0, 0.25, 3.0, -0.125}, at::kFloat).view({2, 3}).requires_grad_(),
      at::tensor({1.0, -2.0}, at::kFloat).requires_grad_()};
  const auto optimizer = make_optimizer("adafactor", values);
  const double gradients[2][8] = {{1, -2, 0.5, 0.25, 1, -4, 0.5, -1}, {0.5, 1, -1, 2, -0.5, 1, 1, 2}};
  for (const auto& all : gradients) {
    const Tensor gradient = at::tensor(at::ArrayRef<double>(all, 8), at::kFloat);
    for (std::size_t i = 0; i < 2; ++i) {
      Tensor value = values[i];
      value.mutable_grad() = gradient.narrow(0, i == 0 ? 0 : 6, value.numel()).view_as(value).clone();
    }
    optimizer->step();
  }
  const Tensor matrix =
      at::tensor({0.4659450, -0.9948934, 2.0075073, 0.2255533, 2.9988642, -0.1170332}, at::kFloat);
  EXPECT_TRUE(at::allclose(values[0].flatten(), matrix, 1e-6, 1e-6)) << values[0];
  EXPECT_TRUE(at::allclose(values[1], at::tensor({0.9685271, -1.9998500}, at::kFloat), 1e-6, 1e-6))
      << values[1];
}

TEST_F(OptimizerTest, RefusesUnknownNames) {
  EXPECT_EQ(make_optimizer("none", {}), nullptr);
  EXPECT_THROW(make_optimizer("adam", {}), Error);
}

}  // namespace
}  // namespace offprof
