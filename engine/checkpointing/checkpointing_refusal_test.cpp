// Tests of modules that cannot be checkpointed, of errors in checkpointed modules, and of the choice of
// submodules by patterns.
#include <gmock/gmock.h>

#include "tests/support/checkpointing_fixture.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using CheckpointingRefusals = CheckpointingTest;

TEST_F(CheckpointingRefusals, ReportsAnInputThatIsEditedBeforeBackward) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    y = torch.relu(x)
    z = self.first.forward(y)
    y.mul_(2)
    return (self.last.forward(z) + y).sum()
)");
  const CheckpointedModules checkpointed(model, {"first"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  EXPECT_THAT(
      message_of<std::exception>([&] { loss.backward(); }),
      AllOf(HasSubstr("modified by an inplace operation"), HasSubstr("the checkpointed module first")));
}

TEST_F(CheckpointingRefusals, ReportsAnEditedOutputLikePlainAutograd) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x)).mul_(2).sum()
)");
  const CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  EXPECT_THAT(message_of<std::exception>([&] { loss.backward(); }),
              HasSubstr("modified by an inplace operation"));
}

TEST_F(CheckpointingRefusals, RejectsASubmoduleThatEditsItsInput) {
  Module model = model_of(layer("def forward(self, x):\n    return x.mul_(2).exp()\n"), layer(kLinear), R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x * 1)).sum()
)");
  CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  const std::optional<Error> refusal = checkpointed.take_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_STREQ(refusal->what(), "first edits its input in place, so it cannot be checkpointed");
}

TEST_F(CheckpointingRefusals, RejectsAModuleThatChangesInItsSecondRun) {
  const Module first = layer(R"(
def forward(self, x):
    if self.flag:
        return torch.exp(torch.sin(x))
    return torch.exp(x)
)");
  Module model = model_of(first, layer(kLinear));
  const CheckpointedModules checkpointed(model, {"first"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  model.attr("first").toModule().setattr("flag", true);
  EXPECT_THAT(message_of<Error>([&] { loss.backward(); }),
              HasSubstr("first saves more tensors in the recomputed forward than in the first forward"));
}

TEST_F(CheckpointingRefusals, RejectsAModuleThatDifferentiatesItself) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.exp(x)
    gradient = torch.autograd.grad([y.sum()], [x], create_graph=True)[0]
    assert gradient is not None
    return y * gradient
)"),
                          layer(kLinear));
  CheckpointedModules checkpointed(model, {"first"}, at::kCPU);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  const std::optional<Error> refusal = checkpointed.take_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_STREQ(refusal->what(), "first differentiates itself, so it cannot be checkpointed");
}

TEST_F(CheckpointingRefusals, AnErrorInTheSecondRunChangesNothingElse) {
  Module model = model_of(layer(R"(
def forward(self, x):
    self.count.add_(1)
    y = torch.dropout(torch.exp(x), 0.5, True)
    assert not self.flag, "no second run"
    return y
)"),
                          layer(kLinear));
  Module first = model.attr("first").toModule();
  CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  const Outcome expected = without(checkpointed, model);
  const Outcome failed = outcome(model, [&](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    first.setattr("flag", true);
    EXPECT_THAT(message_of<std::exception>([&] { loss.backward(); }), HasSubstr("no second run"));
  });
  EXPECT_TRUE(bitwise_equal(failed.next_random_numbers, expected.next_random_numbers));
  for (std::size_t i = 0; i < expected.buffers.size(); ++i)
    EXPECT_TRUE(bitwise_equal(failed.buffers[i], expected.buffers[i])) << "buffer " << i;
  first.setattr("flag", false);
  expect_equal(outcome(model, train), expected);
}

TEST_F(CheckpointingRefusals, AnErrorInTheFirstRunLeavesNoHooks) {
  const Module first = layer(R"(
def forward(self, x):
    y = torch.exp(x)
    assert not self.flag, "no first run"
    return y
)");
  Module model = model_of(first, layer(kLinear));
  CheckpointedModules checkpointed(model, {"*"}, at::kCPU);
  model.attr("first").toModule().setattr("flag", true);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  model.attr("first").toModule().setattr("flag", false);
  const Outcome after = outcome(model, train);
  expect_equal(after, without(checkpointed, model));
}

// --- Choice of submodules ---

Module nested() {
  const auto holder = [] { return Module("Holder"); };
  Module model = holder(), layers = holder(), block = layer(kLinear);
  block.register_module("norm", layer(kNorm));
  layers.register_module("0", block);
  layers.register_module("1", copy_of(block));
  model.register_module("layers", layers);
  model.register_module("head", layer(kLinear));
  return model;
}

TEST_F(CheckpointingRefusals, TakesTheOutermostOfNestedSubmodules) {
  EXPECT_THAT(checkpointed_paths(nested(), {"layers.*"}), ElementsAre("layers.0", "layers.1"));
  EXPECT_THAT(checkpointed_paths(nested(), {"*.norm", "layers.0"}), ElementsAre("layers.0", "layers.1.norm"));
}

TEST_F(CheckpointingRefusals, SkipsAContainerThatIsNotCalled) {
  EXPECT_THAT(checkpointed_paths(nested(), {"*"}), ElementsAre("layers.0", "layers.1", "head"));
}

TEST_F(CheckpointingRefusals, RejectsAPatternThatMatchesNothingAndNamesThePaths) {
  try {
    checkpointed_paths(nested(), {"head", "blocks.*"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "checkpoint: 'blocks.*' matches no submodule of the model");
    EXPECT_EQ(error.hint(), "its submodules are layers.0, layers.0.norm, layers.1, layers.1.norm, head");
  }
}

TEST_F(CheckpointingRefusals, RejectsAModelWithoutSubmodules) {
  EXPECT_THAT(message_of<Error>([] { checkpointed_paths(layer(kLinear), {"*"}); }),
              HasSubstr("the model calls no submodules"));
}

}  // namespace
}  // namespace offprof
