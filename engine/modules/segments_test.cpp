#include "engine/modules/segments.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <thread>

#include "engine/torch_test.h"
#include "traces/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using torch::jit::Module;

constexpr const char* kLinear = R"(
def forward(self, x):
    return torch.sigmoid(torch.linear(torch.tanh(x), self.weight))
)";
constexpr const char* kDropout = R"(
def forward(self, x):
    return torch.dropout(torch.linear(torch.exp(x * 0.1), self.weight), 0.5, True)
)";
constexpr const char* kNorm = R"(
def forward(self, x):
    self.count.add_(1)
    return torch.batch_norm(torch.linear(x, self.weight), self.scale, self.shift, self.mean, self.variance, True,
                            0.1, 1e-5, True) * 2
)";
/// What a stack of layers does with its first input.
constexpr const char* kInTurn = R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x)).pow(2).sum()
)";

/// A module with a weight [4,4], what batch norm needs, and a flag, whose forward is `code`.
Module layer(const std::string& code) {
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

/// Another module of the same class.
Module copy_of(const Module& module) {
  const at::NoGradGuard no_grad;
  return module.deepcopy();
}

/// A model with two layers, `first` and `last`.
Module model_of(const Module& first, const Module& last, const std::string& code = kInTurn) {
  Module model("Model");
  model.register_attribute("training", c10::BoolType::get(), true);
  model.register_module("first", first);
  model.register_module("last", last);
  model.define(code);
  return model;
}

/// All that a step leaves behind.
struct Outcome {
  std::vector<Tensor> gradients;
  std::vector<Tensor> buffers;
  Tensor next_random_numbers;
};

void expect_equal(const Outcome& actual, const Outcome& expected) {
  ASSERT_EQ(actual.gradients.size(), expected.gradients.size());
  for (std::size_t i = 0; i < expected.gradients.size(); ++i)
    EXPECT_TRUE(bitwise_equal(actual.gradients[i], expected.gradients[i])) << "gradient " << i;
  for (std::size_t i = 0; i < expected.buffers.size(); ++i)
    EXPECT_TRUE(bitwise_equal(actual.buffers[i], expected.buffers[i])) << "buffer " << i;
  EXPECT_TRUE(bitwise_equal(actual.next_random_numbers, expected.next_random_numbers));
}

class SegmentsTest : public TorchTest {
 protected:
  using Train = std::function<void(Module&, const Tensor&)>;

  /// As a job has it.
  SegmentsTest() {
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::getProfilingMode() = false;
  }

  static void train(Module& model, const Tensor& x) { model.forward({x}).toTensor().backward(); }

  /// Gradients of the input and the parameters, from the same start each time.
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

  Outcome without(Segments& segments, Module& model, const Train& work = train) {
    const Segments::Off off(segments);
    return outcome(model, work);
  }

  /// The model with segments leaves what it leaves without them, under every policy.
  void expect_as_without(Module& model, const std::vector<std::string>& patterns, const Train& work = train) {
    Segments segments(model, patterns, at::kCPU);
    const Outcome expected = without(segments, model, work);
    expect_equal(outcome(model, work), expected);
    for (const Policy& policy : {test_policy("offload", 0, 0), test_policy("trl", 0, 0)})
      expect_equal(
          outcome(model, [&](Module& same, const Tensor& x) { run_step(policy, [&] { work(same, x); }); }),
          expected);
    EXPECT_THAT(segments.uncalled(), IsEmpty());
  }

  Module model_ = model_of(layer(kLinear), layer(kLinear));
};

TEST_F(SegmentsTest, SaveTheirInputsAndNothingElse) {
  const Tensor x = leaf({3, 4});
  const auto saved_in_forward = [&] {
    std::int64_t tensors = 0;
    auto step = make_step(test_policy("keep", std::nullopt, std::nullopt));
    const CurrentStep current(step);
    const Tensor loss = model_.forward({x}).toTensor();
    for (const auto& [key, entry] : step->ledger()) tensors += entry.tensors;
    return tensors;
  };
  Segments segments(model_, {"*"}, at::kCPU);
  {
    const Segments::Off off(segments);
    EXPECT_GT(saved_in_forward(), 4);
  }
  EXPECT_EQ(saved_in_forward(), 3);  // the input of each, and that of pow
}

TEST_F(SegmentsTest, HaveTheGradientsOfPlainAutograd) {
  expect_as_without(model_, {"first", "last"});
}

TEST_F(SegmentsTest, DrawDropoutAgain) {
  Module model = model_of(layer(kDropout), layer(kDropout));
  expect_as_without(model, {"*"});
}

TEST_F(SegmentsTest, UpdateStatisticsOnce) {
  Module model = model_of(layer(kNorm), layer(kNorm));
  expect_as_without(model, {"*"});
  EXPECT_EQ(model.attr("first").toModule().attr("count").toTensor().item<int>(), 2);
}

TEST_F(SegmentsTest, ReadABufferAsItWasBeforeTheyWroteIt) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.exp(x + self.mean)
    self.mean.mul_(0.5)
    return y * y
)"),
                          layer(kLinear));
  expect_as_without(model, {"*"});
}

TEST_F(SegmentsTest, RestoreWhatTheyAssign) {
  Module model = model_of(layer(R"(
def forward(self, x):
    self.mean = self.mean * 3
    return torch.exp(x * self.mean.mean() * 0.1)
)"),
                          layer(kLinear));
  expect_as_without(model, {"*"});
}

TEST_F(SegmentsTest, TakeAndReturnListsTuplesAndNone) {
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

TEST_F(SegmentsTest, OutputsRequireGradientsWhereTheyDoWithout) {
  Module model = model_of(layer(R"(
def forward(self, x):
    return torch.exp(x), torch.exp(self.variance), x > 0
)"),
                          layer(kLinear), R"(
def forward(self, x):
    y, constant, mask = self.first.forward(x)
    return y, constant, mask
)");
  const Segments segments(model, {"first"}, at::kCPU);
  const auto outputs = model.forward({leaf({3, 4})}).toTupleRef().elements().vec();
  EXPECT_TRUE(outputs[0].toTensor().requires_grad());
  EXPECT_FALSE(outputs[1].toTensor().requires_grad());
  EXPECT_FALSE(outputs[2].toTensor().requires_grad());
}

TEST_F(SegmentsTest, InputsMayNeedNoGradient) {
  Module model = model_of(layer(kDropout), layer(kLinear), R"(
def forward(self, x):
    return (self.last.forward(self.first.forward(torch.ones_like(x))) * x).sum()
)");
  expect_as_without(model, {"*"});
}

TEST_F(SegmentsTest, MayReturnViewsThatAreEdited) {
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

TEST_F(SegmentsTest, MayBeCalledSeveralTimes) {
  Module model = model_of(layer(kDropout), layer(kNorm), R"(
def forward(self, x):
    for i in range(3):
        x = self.last.forward(self.first.forward(x))
    return x.pow(2).sum()
)");
  expect_as_without(model, {"*"});
}

TEST_F(SegmentsTest, OfOneClassKeepApart) {
  const Module first = layer(kLinear);
  Module last = copy_of(first);
  ASSERT_EQ(first.type(), last.type());
  last.setattr("weight", at::randn({4, 4}, at::kDouble).set_requires_grad(true));
  Module model = model_of(first, last);
  expect_as_without(model, {"first"});
}

TEST_F(SegmentsTest, InsideASegmentAreAPartOfIt) {
  Module outer("Outer");
  outer.register_module("inside", layer(kDropout));
  outer.define("def forward(self, x):\n    return torch.exp(self.inside.forward(x) * 0.1)\n");
  Module inner = outer.attr("inside").toModule();
  Module model = model_of(outer, inner);
  expect_as_without(model, {"first", "last"});
}

TEST_F(SegmentsTest, GoBackwardTwiceWhereTheGraphIsRetained) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  const Train work = [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
  };
  Segments segments(model, {"*"}, at::kCPU);
  const Outcome expected = without(segments, model, work);
  expect_equal(outcome(model, work), expected);
  expect_equal(outcome(model,
                       [&](Module& same, const Tensor& x) {
                         run_step(test_policy("offload", 0, 0), [&] { work(same, x); });
                       }),
               expected);
}

TEST_F(SegmentsTest, HaveHigherDerivatives) {
  Module model = model_of(layer(kDropout), layer(kLinear));
  const Train work = [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    const auto first = torch::autograd::grad({loss}, {x}, {}, std::nullopt, /*create_graph=*/true);
    (loss + first[0].pow(2).sum()).backward();
  };
  Segments segments(model, {"*"}, at::kCPU);
  const Outcome expected = without(segments, model, work);
  expect_equal(outcome(model, work), expected);
}

TEST_F(SegmentsTest, GoBackwardOnAnotherThread) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  expect_as_without(model, {"*"}, [](Module& same, const Tensor& x) {
    const Tensor loss = same.forward({x}).toTensor();
    std::thread([&] { loss.backward(); }).join();
  });
}

TEST_F(SegmentsTest, GoForwardTwiceBeforeBackward) {
  Module model = model_of(layer(kDropout), layer(kNorm));
  expect_as_without(model, {"*"}, [](Module& same, const Tensor& x) {
    const Tensor first = same.forward({x}).toTensor(), second = same.forward({x * 2}).toTensor();
    second.backward();
    first.backward();
  });
}

TEST_F(SegmentsTest, AreNoneWithoutGradients) {
  const Tensor x = leaf({3, 4});
  const Segments segments(model_, {"*"}, at::kCPU);
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(model_.forward({x}).toTensor().requires_grad());
  EXPECT_THAT(segments.uncalled(), ElementsAre("first", "last"));
}

TEST_F(SegmentsTest, AreModulesAgainWhenTheyEnd) {
  { const Segments segments(model_, {"*"}, at::kCPU); }
  EXPECT_TRUE(model_.attr("first").toModule().get_method("forward").function().isGraphFunction());
  EXPECT_NO_THROW(train(model_, leaf({3, 4})));
}

TEST_F(SegmentsTest, LeaveNoMemoryBehind) {
  const Tensor x = leaf({3, 4});
  Module model = model_of(layer(kDropout), layer(kNorm));
  const Segments segments(model, {"*"}, at::kCPU);
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

// --- What is refused ---

TEST_F(SegmentsTest, AnInputThatIsEditedBeforeBackwardIsAnError) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    y = torch.relu(x)
    z = self.first.forward(y)
    y.mul_(2)
    return (self.last.forward(z) + y).sum()
)");
  const Segments segments(model, {"first"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  EXPECT_THAT(message_of<std::exception>([&] { loss.backward(); }),
              AllOf(HasSubstr("modified by an inplace operation"), HasSubstr("segment first")));
}

TEST_F(SegmentsTest, AnOutputThatIsEditedIsTheErrorOfPlainAutograd) {
  Module model = model_of(layer(kLinear), layer(kLinear), R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x)).mul_(2).sum()
)");
  const Segments segments(model, {"*"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  EXPECT_THAT(message_of<std::exception>([&] { loss.backward(); }),
              HasSubstr("modified by an inplace operation"));
}

TEST_F(SegmentsTest, ASubmoduleThatEditsItsInputIsRefused) {
  Module model = model_of(layer("def forward(self, x):\n    return x.mul_(2).exp()\n"), layer(kLinear), R"(
def forward(self, x):
    return self.last.forward(self.first.forward(x * 1)).sum()
)");
  Segments segments(model, {"*"}, at::kCPU);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  const std::optional<Error> refusal = segments.take_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_STREQ(refusal->what(), "first edits its input in place, so it cannot be a segment");
}

TEST_F(SegmentsTest, OneThatDoesSomethingElseWhenItRunsAgainIsRefused) {
  const Module first = layer(R"(
def forward(self, x):
    if self.flag:
        return torch.exp(torch.sin(x))
    return torch.exp(x)
)");
  Module model = model_of(first, layer(kLinear));
  const Segments segments(model, {"first"}, at::kCPU);
  const Tensor loss = model.forward({leaf({3, 4})}).toTensor();
  model.attr("first").toModule().setattr("flag", true);
  EXPECT_THAT(message_of<Error>([&] { loss.backward(); }),
              HasSubstr("first saves more tensors when it runs again than before"));
}

TEST_F(SegmentsTest, OneThatDifferentiatesItselfIsRefused) {
  Module model = model_of(layer(R"(
def forward(self, x):
    y = torch.exp(x)
    gradient = torch.autograd.grad([y.sum()], [x], create_graph=True)[0]
    assert gradient is not None
    return y * gradient
)"),
                          layer(kLinear));
  Segments segments(model, {"first"}, at::kCPU);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  const std::optional<Error> refusal = segments.take_refusal();
  ASSERT_TRUE(refusal);
  EXPECT_STREQ(refusal->what(), "first differentiates itself, so it cannot be a segment");
}

TEST_F(SegmentsTest, AnErrorInTheSecondRunLeavesAllElseAsItWas) {
  Module model = model_of(layer(R"(
def forward(self, x):
    self.count.add_(1)
    y = torch.dropout(torch.exp(x), 0.5, True)
    assert not self.flag, "no second run"
    return y
)"),
                          layer(kLinear));
  Module first = model.attr("first").toModule();
  Segments segments(model, {"*"}, at::kCPU);
  const Outcome expected = without(segments, model);
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

TEST_F(SegmentsTest, AnErrorInTheFirstRunLeavesNoHooks) {
  const Module first = layer(R"(
def forward(self, x):
    y = torch.exp(x)
    assert not self.flag, "no first run"
    return y
)");
  Module model = model_of(first, layer(kLinear));
  Segments segments(model, {"*"}, at::kCPU);
  model.attr("first").toModule().setattr("flag", true);
  EXPECT_ANY_THROW(model.forward({leaf({3, 4})}));
  model.attr("first").toModule().setattr("flag", false);
  const Outcome after = outcome(model, train);
  expect_equal(after, without(segments, model));
}

// --- Which submodules ---

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

TEST_F(SegmentsTest, OfNestedSubmodulesTheOutermostIsTaken) {
  EXPECT_THAT(segment_paths(nested(), {"layers.*"}), ElementsAre("layers.0", "layers.1"));
  EXPECT_THAT(segment_paths(nested(), {"*.norm", "layers.0"}), ElementsAre("layers.0", "layers.1.norm"));
}

TEST_F(SegmentsTest, AContainerThatIsNotCalledIsNone) {
  EXPECT_THAT(segment_paths(nested(), {"*"}), ElementsAre("layers.0", "layers.1", "head"));
}

TEST_F(SegmentsTest, APatternThatMatchesNothingIsRefusedAndPathsAreNamed) {
  try {
    segment_paths(nested(), {"head", "blocks.*"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "segments: 'blocks.*' matches no submodule of the model");
    EXPECT_EQ(error.hint(), "its submodules are layers.0, layers.0.norm, layers.1, layers.1.norm, head");
  }
}

TEST_F(SegmentsTest, AModelWithoutSubmodulesHasNone) {
  EXPECT_THAT(message_of<Error>([] { segment_paths(layer(kLinear), {"*"}); }),
              HasSubstr("no submodule that is called"));
}

}  // namespace
}  // namespace offprof
