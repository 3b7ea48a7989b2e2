#include "engine/checkpointing/checkpointed_modules.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <thread>

#include "tests/support/checkpointing_fixture.h"

namespace offprof {
namespace {

using testing::ElementsAre;

TEST_F(CheckpointingTest, SaveOnlyTheirInputs) {
  const Tensor x = leaf({3, 4});
  const auto saved_in_forward = [&] {
    std::int64_t tensors = 0;
    auto step = make_step(test_policy("keep", std::nullopt, std::nullopt));
    const CurrentStep current(step);
    const Tensor loss = model_.forward({x}).toTensor();
    for (const auto& [key, entry] : step->ledger()) tensors += entry.tensors;
    return tensors;
  };
  CheckpointedModules checkpointed(model_, {"*"}, at::kCPU);
  {
    const CheckpointedModules::Off off(checkpointed);
    EXPECT_GT(saved_in_forward(), 4);
  }
  EXPECT_EQ(saved_in_forward(), 3);  // the input of each module, and the input of pow
}

TEST_F(CheckpointingTest, HaveTheGradientsOfPlainAutograd) {
  expect_as_without(model_, {"first", "last"});
}

TEST_F(CheckpointingTest, RepeatTheDropoutOfTheFirstRun) {
  Module model = model_of(layer(kDropout), layer(kDropout));
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, UpdateStatisticsOnce) {
  Module model = model_of(layer(kNorm), layer(kNorm));
  expect_as_without(model, {"*"});
  EXPECT_EQ(model.attr("first").toModule().attr("count").toTensor().item<int>(), 2);
}

TEST_F(CheckpointingTest, ReadABufferAsItWasBeforeTheirWrite) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.exp(x + self.mean)
    self.mean.mul_(0.5)
    return y * y
)"),
                          layer(kLinear));
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, RestoreTheAttributesThatTheyAssign) {
  Module model = model_of(layer(R"(
def forward(self, x):
    self.mean = self.mean * 3
    return torch.exp(x * self.mean.mean() * 0.1)
)"),
                          layer(kLinear));
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, TakeAndReturnListsTuplesAndNone) {
  Module model = model_of(layer(R"(
def forward(self, x, more: List[Tensor], pair: Tuple[Tensor, int], none: Optional[Tensor], scale: float):
    y = torch.linear(x, self.weight) * more[0] * pair[0] * pair[1] * scale
    if none is None:
        y = torch.exp(y * 0.01)
    return y, [torch.tanh(x), more[1]], pair[1]
)"),
                          layer(kLinear), R"(
def forward(self, x):
    y, more, count = self.first.forward(x, [x * 2, x.sin()], (x.cos(), 3), None, 0.5)
    return (self.last.forward(y) * more[0] * more[1]).sum() * count
)");
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, OutputsRequireGradientsAsInPlainAutograd) {
  Module model = model_of(layer(R"(
def forward(self, x):
    return torch.exp(x), torch.exp(self.variance), x > 0
)"),
                          layer(kLinear), R"(
def forward(self, x):
    y, constant, mask = self.first.forward(x)
    return y, constant, mask
)");
  const CheckpointedModules checkpointed(model, {"first"}, at::kCPU);
  const auto outputs = model.forward({leaf({3, 4})}).toTupleRef().elements().vec();
  EXPECT_TRUE(outputs[0].toTensor().requires_grad());
  EXPECT_FALSE(outputs[1].toTensor().requires_grad());
  EXPECT_FALSE(outputs[2].toTensor().requires_grad());
}

TEST_F(CheckpointingTest, InputsMayNeedNoGradient) {
  Module model = model_of(layer(kDropout), layer(kLinear), R"(
def forward(self, x):
    return (self.last.forward(self.first.forward(torch.ones_like(x))) * x).sum()
)");
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, MayReturnViewsThatAreEdited) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.tanh(x)
    return y[1:], y
)"),
                          layer(kLinear), R"(
def forward(self, x):
    view, whole = self.first.forward(x * 1)
    view = view.clone().mul_(2)
    return (self.last.forward(whole)[1:] * view.exp_()).sum()
)");
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, MayBeCalledSeveralTimes) {
  Module model = model_of(layer(kDropout), layer(kNorm), R"(
def forward(self, x):
    for i in range(3):
        x = self.last.forward(self.first.forward(x))
    return x.pow(2).sum()
)");
  expect_as_without(model, {"*"});
}

TEST_F(CheckpointingTest, AreIndependentWithinOneClass) {
  const Module first = layer(kLinear);
  Module last = copy_of(first);
  ASSERT_EQ(first.type(), last.type());
  last.setattr("weight", at::randn({4, 4}, at::kDouble).set_requires_grad(true));
  Module model = model_of(first, last);
  expect_as_without(model, {"first"});
}

TEST_F(CheckpointingTest, NestedInAnotherArePartsOfIt) {
  Module outer("Outer");
  outer.register_module("inside", layer(kDropout));
  outer.define("def forward(self, x):\n    return torch.exp(self.inside.forward(x) * 0.1)\n");
  Module inner = outer.attr("inside").toModule();
  Module model = model_of(outer, inner);
  expect_as_without(model, {"first", "last"});
}

TEST_F(CheckpointingTest, SupportTwoBackwardsOfARetainedGraph) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  const Train work = [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  };
  CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  const Outcome expected = without(checkpointed, model, work);
  expect_equal(outcome(model, work), expected);
  expect_equal(outcome(model,
                       [&](Module& same, const Tensor& x) {
                         run_step(test_policy("offload", 0, 0), [&] { work(same, x); });
                       }),
               expected);
}

TEST_F(CheckpointingTest, SupportHigherDerivatives) {
  Module model = model_of(layer(kDropout), layer(kLinear));
  const Train work = [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    const auto first = torch::autograd::grad({loss}, {x}, {}, std::nullopt, /*create_graph=*/true);
    (loss + first[0].pow(2).sum()).backward();
  };
  CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  const Outcome expected = without(checkpointed, model, work);
  expect_equal(outcome(model, work), expected);
}

TEST_F(CheckpointingTest, SupportBackwardOnAnotherThread) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  expect_as_without(model, {"*"}, [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    std::thread([&] { loss.backward(); }).join();
  });
}

TEST_F(CheckpointingTest, SupportTwoForwardsBeforeBackward) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  expect_as_without(model, {"*"}, [](Module& same, const Tensor& x) {
    const Tensor first = same.forward({x}).toTensor(), second = same.forward({x * 2}).toTensor();
    second.backward();
    first.backward();
  });
}

TEST_F(CheckpointingTest, AreInactiveWithoutGradients) {
  const Tensor x = leaf({3, 4});
  const CheckpointedModules checkpointed(model_, {"*"}, at::kCPU);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(model_.forward({x}).toTensor().requires_grad());
  EXPECT_THAT(checkpointed.uncalled(), ElementsAre("first", "last"));
}

TEST_F(CheckpointingTest, AreOrdinaryModulesAgainAfterTheScope) {
  { const CheckpointedModules checkpointed(model_, {"*"}, at::kCPU); }
  EXPECT_TRUE(model_.attr("first").toModule().get_method("forward").function().isGraphFunction());
  EXPECT_NO_THROW(train(model_, leaf({3, 4})));
}

TEST_F(CheckpointingTest, FreeAllTheirMemory) {
  const Tensor x = leaf({3, 4});
  Module model = model_of(layer(kDropout), layer(kNorm));
  const CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  const auto step = [&] {
    run_step(test_policy("offload", 0, 0), [&] { train(model, x); });
    x.mutable_grad() = Tensor();
    for (Tensor parameter : model.parameters()) parameter.mutable_grad() = Tensor();
  };
  step();
  const Bytes before = live_bytes();
  step();
  model.forward({x});
  EXPECT_EQ(live_bytes(), before);
}

}  // namespace
}  // namespace offprof
