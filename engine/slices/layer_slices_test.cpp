#include "engine/slices/layer_slices.h"

#include <gmock/gmock.h>

#include "engine/parameters/parameter_offloader.h"
#include "engine/slices/sliced_pass.h"
#include "tests/support/checkpointing_fixture.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Inputs = std::vector<std::vector<c10::IValue>>;

/// Returns a model of layers in a row, one pair of them inside a container.
Module chain_of(const Module& layer) {
  Module inner = model_of(copy_of(layer), copy_of(layer), R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x))
)");
  return model_of(layer, inner);
}

class SlicesTest : public CheckpointingTest {
 protected:
  /// Runs one micro-batch after another through the whole model, by plain autograd.
  static void accumulate(Module& model, const Inputs& microbatches) {
    MicrobatchRandom random(static_cast<std::int64_t>(microbatches.size()), at::kCPU);
    for (std::size_t i = 0; i < microbatches.size(); ++i) {
      const MicrobatchRandom::Turn turn(random, i);
      model.forward(microbatches[i]).toTensor().backward();
    }
  }

  static void run(const LayerSlices& slices, const Inputs& microbatches) {
    SlicedPass pass(slices, microbatches);
    std::vector<Tensor> losses;
    for (const c10::IValue& result : pass.forward()) losses.push_back(result.toTensor());
    pass.backward(losses);
  }

  /// Expects that the model in slices has the same outcome as the whole model, under every policy.
  void expect_as_whole(Module& model, std::int64_t slices, std::int64_t microbatches) {
    const auto cut = [&](const Tensor& x) { return cut_into_microbatches({x}, microbatches); };
    const Outcome expected = outcome(model, [&](Module& same, const Tensor& x) { accumulate(same, cut(x)); });
    const LayerSlices parts(model, cut(at::randn({3, 4}, at::kDouble)).front(), slices, at::kCPU);
    EXPECT_EQ(parts.slices().size(), slices);
    const Train work = [&](Module&, const Tensor& x) { run(parts, cut(x)); };
    expect_equal(outcome(model, work), expected);
    for (const Policy& policy : {test_policy("offload", 0, 0), test_policy("trl", 0, 0)})
      expect_equal(
          outcome(model, [&](Module& same, const Tensor& x) { run_step(policy, [&] { work(same, x); }); }),
          expected);
  }
};

TEST_F(SlicesTest, HaveTheGradientsOfPlainAutograd) {
  Module model = chain_of(layer(kLinear));
  for (const std::int64_t slices : {1, 2, 3}) expect_as_whole(model, slices, 1);
}

TEST_F(SlicesTest, RunMicrobatchesLikePlainAccumulation) {
  Module model = chain_of(layer(kLinear));
  for (const std::int64_t slices : {1, 2, 3}) expect_as_whole(model, slices, 3);
}

TEST_F(SlicesTest, OffloadTheValuesOfWaitingMicrobatches) {
  Module model = chain_of(layer(kLinear));
  constexpr std::int64_t kMicrobatches = 3;
  const Inputs microbatches = cut_into_microbatches({at::randn({3, 4}, at::kDouble)}, kMicrobatches);
  const LayerSlices parts(model, microbatches.front(), 3, at::kCPU);
  ParameterOffloader offloader(device_, make_host_parameter_store(device_), /*window_bytes=*/0,
                               /*least_bytes=*/1);
  const auto held_after_forward = [&](ParameterOffloader* asked) {
    const ParameterOffloader::Scope scope(asked);
    const Bytes before = live_bytes();
    SlicedPass pass(parts, microbatches);
    const std::vector<c10::IValue> results = pass.forward();
    return live_bytes() - before;
  };
  const Bytes on_device = held_after_forward(nullptr), off_device = held_after_forward(&offloader);
  constexpr Bytes kRow = 4 * sizeof(double), kResult = sizeof(double);
  EXPECT_EQ(on_device - off_device, kMicrobatches * (2 * kRow + kResult));
  offloader.end_step();
}

/// TRL's policy releases a tensor when backward unpacks it, and the first operator here does not save its
/// input.
TEST_F(SlicesTest, FreeWaitingValuesAtTheSameTimeUnderEveryPolicy) {
  const Module model = chain_of(layer(kDropout));
  const Inputs microbatches = cut_into_microbatches({at::randn({2, 4}, at::kDouble)}, 2);
  const LayerSlices parts(model, microbatches.front(), 3, at::kCPU);
  const auto changes_under = [&](const std::string& policy) {
    ParameterOffloader offloader(device_, make_host_parameter_store(device_), /*window_bytes=*/kMiB,
                                 /*least_bytes=*/1);
    auto residents = std::make_shared<Residents>();
    residents->is_parameter_group = [&](const c10::Storage& storage) {
      return offloader.is_parameter_group(storage);
    };
    residents_ = residents;
    const ParameterOffloader::Scope scope(&offloader);
    const MemoryLog log(device_);
    run_step(test_policy(policy, std::nullopt, 0), [&] { run(parts, microbatches); });
    for (const Tensor& weight : model.parameters()) weight.mutable_grad() = Tensor();
    offloader.end_step();
    return log.changes;
  };
  EXPECT_EQ(changes_under("trl"), changes_under("offload"));
}

TEST_F(SlicesTest, RepeatTheDropoutOfTheFirstRun) {
  Module model = chain_of(layer(kDropout));
  expect_as_whole(model, 3, 1);
  expect_as_whole(model, 3, 3);
}

TEST_F(SlicesTest, UpdateStatisticsOnce) {
  Module model = chain_of(layer(kNorm));
  expect_as_whole(model, 3, 1);
  expect_as_whole(model, 3, 3);
}

TEST_F(SlicesTest, CarryValuesOfBranchesAcrossCuts) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    y = torch.tanh(x)
    z = self.first.forward(y)
    w = self.last.forward(z * y)
    u = self.first.forward(w + y * y)
    return (self.last.forward(u * z) * y + u * w * z).sum()
)");
  for (const std::int64_t slices : {2, 3, 4}) expect_as_whole(model, slices, 3);
}

TEST_F(SlicesTest, AddUpGradientsOfSharedParameters) {
  const Module shared = layer(R"(
def forward(self, x):
    return torch.sigmoid(torch.linear(torch.linear(x, self.weight), self.weight))
)");
  Module model = model_of(shared, shared, R"(
def forward(self, x):
    return self.first.forward(self.last.forward(self.first.forward(x))).pow(2).sum()
)");
  for (const std::int64_t microbatches : {1, 3}) expect_as_whole(model, 3, microbatches);
}

/// Gradients are not reset between steps: the existing gradient comes first in the sum, then each micro-batch
/// as a whole.
TEST_F(SlicesTest, AddGradientsOfSharedParametersToThoseOfEarlierSteps) {
  const Module shared = layer(kLinear);
  Module model = model_of(shared, shared, R"(
def forward(self, x):
    return self.first.forward(torch.tanh(self.last.forward(self.first.forward(x)))).pow(2).sum()
)");
  const auto cut = [](const Tensor& x) { return cut_into_microbatches({x}, 3); };
  const LayerSlices parts(model, cut(at::randn({3, 4}, at::kDouble)).front(), 3, at::kCPU);
  constexpr int kSteps = 3;
  const Outcome expected = outcome(model, [&](Module& same, const Tensor& x) {
    for (int i = 0; i < kSteps; ++i) accumulate(same, cut(x));
  });
  const Outcome actual = outcome(model, [&](Module&, const Tensor& x) {
    for (int i = 0; i < kSteps; ++i) run(parts, cut(x));
  });
  expect_equal(actual, expected);
}

TEST_F(SlicesTest, AddGradientsOfSharedParametersWhoseFirstUseHasNone) {
  const Module shared = layer(kLinear);
  Module model = model_of(shared, shared, R"(
def forward(self, x):
    y = self.first.forward(x).detach()
    return self.first.forward(self.last.forward(y)).pow(2).sum()
)");
  for (const std::int64_t microbatches : {1, 3}) expect_as_whole(model, 3, microbatches);
}

TEST_F(SlicesTest, TakeAndReturnListsTuplesAndNumbers) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.linear(x, self.weight)
    return y, [torch.tanh(x), y * 2], 3
)"),
                          layer(kLinear), R"(
def forward(self, x):
    y, more, count = self.first.forward(x)
    return (self.last.forward(y) * more[0] * more[1]).sum() * count
)");
  expect_as_whole(model, 2, 3);
}

TEST_F(SlicesTest, ReturnSeveralResults) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    y = self.first.forward(x)
    return y, self.last.forward(y)
)");
  const auto loss = [](const c10::IValue& result) {
    const auto& both = result.toTupleRef().elements();
    return (both[0].toTensor() * both[1].toTensor()).sum();
  };
  const Outcome expected =
      outcome(model, [&](Module& same, const Tensor& x) { loss(same.forward({x})).backward(); });
  const LayerSlices slices(model, {leaf({3, 4})}, 2, at::kCPU);
  expect_equal(outcome(model,
                       [&](Module&, const Tensor& x) {
                         SlicedPass pass(slices, {{x}});
                         pass.backward({loss(pass.forward().front())});
                       }),
               expected);
}

TEST_F(SlicesTest, SkipGradientsOfTensorsThatNeedNone) {
  Module model = model_of(layer(R"(
def forward(self, x):
    return torch.linear(x, self.weight), torch.argmax(x, 1), x.detach() * 2
)"),
                          layer(kLinear), R"(
def forward(self, x):
    y, index, still = self.first.forward(x)
    return (self.last.forward(y) * still).index_select(0, index % 3).sum()
)");
  expect_as_whole(model, 2, 1);
}

TEST_F(SlicesTest, SkipPartsThatGetNoGradient) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    y = self.first.forward(x)
    z = self.last.forward(y)
    return (y.detach() + x).sum() + z.detach().sum()
)");
  expect_as_whole(model, 2, 3);
}

TEST_F(SlicesTest, SaveOnlyTheirInputs) {
  Module model = chain_of(layer(kLinear));
  const Tensor x = leaf({3, 4});
  const LayerSlices slices(model, {x}, 3, at::kCPU);
  auto step = make_step(test_policy("keep", std::nullopt, std::nullopt));
  const CurrentStep current(step);
  SlicedPass pass(slices, {{x}});
  const auto results = pass.forward();
  std::int64_t tensors = 0;
  for (const auto& [key, entry] : step->ledger()) tensors += entry.tensors;
  EXPECT_EQ(tensors, 3);
}

/// A value that a later part edits must not cross a cut.
TEST_F(SlicesTest, AreCutOnlyWhereNoLaterEditFollows) {
  Module model = model_of(layer(R"(
def forward(self, x):
    return torch.linear(torch.tanh(x), self.weight)
)"),
                          layer(R"(
def forward(self, x):
    return torch.linear(x.mul_(2), self.weight)
)"),
                          R"(
def forward(self, x):
    return self.first.forward(self.last.forward(self.first.forward(x))).pow(2).sum()
)");
  expect_as_whole(model, 2, 1);
  EXPECT_THAT(message_of<Error>([&] {
                LayerSlices(model, {leaf({3, 4})}, 3, at::kCPU);
              }),
              HasSubstr("--slices 3: the model can be cut into at most 2 slices"));
}

TEST_F(SlicesTest, AreCutInsideAMethodThatForwardCalls) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def run(self, x):
    return self.last.forward(self.first.forward(x))

def forward(self, x):
    return self.run(x).pow(2).sum()
)");
  expect_as_whole(model, 2, 3);
}

Module without_submodules(const std::string& code) {
  Module model("Model");
  model.register_parameter("weight", at::randn({4, 4}, at::kDouble).set_requires_grad(true), false);
  model.define(code);
  return model;
}

TEST_F(SlicesTest, AreCutBetweenOperatorsIfNoSubmoduleIsCalled) {
  Module model = without_submodules(R"(
def forward(self, x):
    y = torch.tanh(torch.linear(x, self.weight))
    return (torch.linear(torch.sigmoid(y), self.weight) * y).sum()
)");
  for (const std::int64_t slices : {1, 2, 4}) expect_as_whole(model, slices, 3);
}

/// Returns the hint of the error that the model cannot be cut into so many slices.
std::string advice_for(const Module& model, const std::vector<c10::IValue>& inputs, std::int64_t slices) {
  try {
    LayerSlices(model, inputs, slices, at::kCPU);
  } catch (const Error& error) {
    return error.hint();
  }
  return "none: it can be cut";
}

TEST_F(SlicesTest, DoNotCutALoop) {
  Module model = without_submodules(R"(
def forward(self, x):
    for i in range(3):
        x = torch.sigmoid(torch.linear(x, self.weight))
    return x
)");
  EXPECT_THAT(message_of<Error>([&] {
                LayerSlices(model, {leaf({3, 4})}, 2, at::kCPU);
              }),
              HasSubstr("cannot be cut anywhere"));
  EXPECT_THAT(advice_for(model, {leaf({3, 4})}, 2), HasSubstr("the loop at <string>:3"));
}

TEST_F(SlicesTest, DoNotCutABranch) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x, deep: bool):
    x = self.first.forward(self.last.forward(x))
    if deep:
        x = self.last.forward(x)
    return x
)");
  EXPECT_THAT(advice_for(model, {leaf({3, 4}), true}, 9),
              AllOf(HasSubstr("the branch at <string>:4"), HasSubstr("--slices 2 or fewer")));
}

TEST_F(SlicesTest, NameTheModulesThatSaveTheirTensors) {
  Module model = chain_of(layer(kLinear));
  const Tensor x = leaf({3, 4});
  const LayerSlices slices(model, {x}, 2, at::kCPU);
  EXPECT_EQ(slices.slices()[0].module.path, "first");
  EXPECT_THAT(slices.slices()[1].module.name, HasSubstr("last.last"));
}

TEST_F(SlicesTest, AreSeveralIfTheirNumberIsNotGiven) {
  Module model = chain_of(layer(kLinear));
  const LayerSlices slices(model, {leaf({3, 4})}, std::nullopt, at::kCPU);
  EXPECT_GE(slices.slices().size(), 2U);
}

TEST_F(SlicesTest, ChangeNoBuffersOrRandomNumbersWhenTheyAreCut) {
  Module model = chain_of(layer(kNorm));
  const Tensor x = leaf({3, 4});
  at::manual_seed(kSeed);
  const Tensor expected = at::rand({4});
  at::manual_seed(kSeed);
  const LayerSlices slices(model, {x}, 2, at::kCPU);
  EXPECT_TRUE(bitwise_equal(at::rand({4}), expected));
  EXPECT_EQ(model.attr("first").toModule().attr("count").toTensor().item<int>(), 0);
}

TEST_F(SlicesTest, ReportAnEditedInputLikePlainAutograd) {
  Module model = chain_of(layer(kLinear));
  const Tensor x = leaf({3, 4});
  const LayerSlices slices(model, {x}, 2, at::kCPU);
  const Tensor middle = x * 1;
  SlicedPass pass(slices, {{middle}});
  const Tensor loss = pass.forward().front().toTensor();
  middle.mul_(2);
  EXPECT_THAT(message_of<c10::Error>([&] { pass.backward({loss}); }),
              HasSubstr("modified by an inplace operation"));
}

TEST(Microbatches, AreCutAlongTheFirstDimension) {
  const Tensor x = at::arange(12).view({6, 2}), mask = at::ones({2, 2}), labels = at::arange(6);
  const auto microbatches = cut_into_microbatches({x, mask, labels}, 3);
  ASSERT_EQ(microbatches.size(), 3U);
  EXPECT_TRUE(bitwise_equal(microbatches[1][0].toTensor(), x.narrow(0, 2, 2)));
  EXPECT_TRUE(microbatches[1][1].toTensor().is_same(mask));
  EXPECT_TRUE(bitwise_equal(microbatches[2][2].toTensor(), labels.narrow(0, 4, 2)));
}

TEST(Microbatches, AreRejectedIfTheyDoNotDivideTheBatch) {
  EXPECT_THAT(message_of<Error>([&] {
                cut_into_microbatches({at::ones({4, 2})}, 3);
              }),
              HasSubstr("3 micro-batches do not evenly divide the batch of 4"));
  EXPECT_THAT(message_of<Error>([&] { cut_into_microbatches({at::ones({})}, 3); }),
              HasSubstr("no input has a dimension"));
}

}  // namespace
}  // namespace offprof
