// Tests of autograd features in a training step, under every kind of policy, on every device.
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>

#include "engine/checkpointing/checkpointed_modules.h"
#include "engine/storage/block_codec.h"
#include "tests/conformance/disk_under_test.h"
#include "tests/hazards/hazard_fixture.h"
#include "tests/hazards/module_scenarios.h"
#include "tests/hazards/scenarios.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;

class ScenarioTest : public HazardTest,
                     public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  void SetUp() override { open(std::get<0>(GetParam())); }
  const Scenario& scenario() const { return std::get<1>(GetParam()); }

  bool is_refused(const Policy& policy) const {
    return policy.scheduler == SchedulerKind::kTrl && scenario().asks_again;
  }

  void expect_gradients_under(const std::vector<Policy>& policies) {
    const std::vector<at::Tensor> expected = gradients(scenario().plainly(), std::nullopt);
    for (const Policy& policy : policies) {
      SCOPED_TRACE(policy.name + ": " + describe(policy));
      expect_nothing_left([&] {
        if (is_refused(policy))
          EXPECT_THAT(message_of([&] { gradients(scenario().run, policy); }),
                      HasSubstr("that the policy's rules had released"));
        else
          expect_equal(gradients(scenario().run, policy), expected);
      });
    }
    if (scenario().has_threads) hazards_seen();
  }
};

TEST_P(ScenarioTest, HasTheGradientsOfPlainAutogradAndLeavesNothing) {
  expect_gradients_under(policies_here());
}

TEST_P(ScenarioTest, HasTheSameGradientsWithCompressedMemory) {
  if (!has_block_codec()) GTEST_SKIP() << "this build has no codec";
  give_compressed_memory(device());
  std::vector<Policy> policies = hazard_policies();
  std::erase_if(policies, [](const Policy& policy) { return !uses_disk(policy); });
  EXPECT_FALSE(policies.empty());
  for (Policy& policy : policies)
    for (PolicyRule& rule : policy.rules)
      if (takes_disk(rule.placement.place)) rule.placement.place = Place::kCompress;
  expect_gradients_under(policies);
  device().disk()->take_stored();
  EXPECT_EQ(device().disk()->take_stored().value().peak, 0) << "compressed bytes are left";
}

INSTANTIATE_TEST_SUITE_P(, ScenarioTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(all_scenarios())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
                         });

// --- Memory in use when backward returns ---

class BackwardTest : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { open(GetParam()); }
};

/// Repeats often enough to catch a late thread of the device.
TEST_P(BackwardTest, UsesNoMemoryWhenItReturns) {
  const at::TensorOptions options = at::TensorOptions(device().torch_device()).dtype(at::kDouble);
  const Tensor leaf = at::ones({256}, options).set_requires_grad(true);
  const Bytes before = device().live_bytes();
  for (int i = 0; i < 2000; ++i) {
    torch::autograd::grad({leaf.sin().sum()}, {leaf});
    ASSERT_EQ(device().live_bytes(), before) << "gradient " << i;
    leaf.sin().sum().backward();
    leaf.mutable_grad() = Tensor();
    ASSERT_EQ(device().live_bytes(), before) << "backward " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(, BackwardTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

// --- Errors, which must leave nothing ---

class ErrorTest : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { open(GetParam()); }

  /// Expects the error of `run` under every policy, with nothing left. After it a step must work as usual.
  void expect_error(const Run& run, const std::string& what) {
    const Run clean = [](Graph& g) { graphs::shared_subgraph(g).backward(); };
    const std::vector<at::Tensor> expected = gradients(clean, std::nullopt);
    for (const Policy& policy : policies_here()) {
      SCOPED_TRACE(policy.name + ": " + describe(policy));
      expect_nothing_left([&] { EXPECT_THAT(message_of([&] { gradients(run, policy); }), HasSubstr(what)); });
      expect_equal(gradients(clean, policy), expected);
    }
  }
};

TEST_P(ErrorTest, AnInPlaceEditOfASavedTensorIsRefusedAsByAutograd) {
  const Run run = [](Graph& g) {
    Tensor h = g.x * 2;
    const Tensor loss = h.sin().sum();
    h.select(0, 1).mul_(3);
    loss.backward();
  };
  const std::string what =
      "one of the variables needed for gradient computation has been modified by an inplace operation";
  EXPECT_THAT(message_of([&] { gradients(run, std::nullopt); }), HasSubstr(what));
  expect_error(run, what);
}

TEST_P(ErrorTest, AnInPlaceEditThroughAnotherViewIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor h = g.x * 2;
    const Tensor loss = (h.t().narrow(0, 0, 2) * h.narrow(1, 2, 2).t()).sum();
    h.view({-1}).narrow(0, 40, 1).zero_();
    loss.backward();
  };
  expect_error(run, "modified by an inplace operation");
  hazards_seen();  // the copy of what was saved may still read what the program overwrites; nobody uses it
}

TEST_P(ErrorTest, AnInPlaceEditOfADetachedAliasIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor h = g.x * 2;
    const Tensor loss = h.sin().sum();
    h.detach().add_(1);
    loss.backward();
  };
  EXPECT_THAT(message_of([&] { gradients(run, std::nullopt); }),
              HasSubstr("modified by an inplace operation"));
  expect_error(run, "modified by an inplace operation");
}

/// An optimizer that takes its step too early does this.
TEST_P(ErrorTest, AnInPlaceEditOfAParameterBeforeBackwardIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor loss = g.x.mm(g.w).sin().sum();
    {
      const at::NoGradGuard no_grad;
      g.w.sub_(1);
    }
    loss.backward();
  };
  EXPECT_THAT(message_of([&] { gradients(run, std::nullopt); }),
              HasSubstr("modified by an inplace operation"));
  expect_error(run, "modified by an inplace operation");
}

/// The first backward is right; the second would not be.
TEST_P(ErrorTest, AnInPlaceEditBetweenTwoBackwardsIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor h = g.x * 2, weight = g.w.detach() * 1;
    const Tensor loss = (h.mm(weight) * h.mm(weight)).sum() + h.sum();
    torch::autograd::grad({loss}, {g.x}, {}, /*retain_graph=*/true);
    weight.zero_();
    loss.backward();
  };
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    // A tensor that TRL's rules have dropped is refused before its version is checked.
    expect_nothing_left([&] {
      EXPECT_THAT(message_of([&] { gradients(run, policy); }),
                  testing::AnyOf(HasSubstr("modified by an inplace operation"),
                                 HasSubstr("that the policy's rules had released")));
    });
  }
}

TEST_P(ErrorTest, AnInPlaceEditBetweenTwoUnpacksOfANodeIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor a = g.x * 2, b = g.x * 3;
    const Tensor loss = (a * b).sum();
    a.mul_(3);
    loss.backward();
  };
  expect_error(run, "modified by an inplace operation");
}

TEST_P(ErrorTest, ReportsAnExceptionInForward) {
  expect_error([](Graph& g) { (g.x.exp().sin().mm(g.w) * 2).exp().mm(g.x.mm(g.x)); },
               "mat1 and mat2 shapes cannot be multiplied");
}

TEST_P(ErrorTest, ReportsAnExceptionInTheMiddleOfBackward) {
  const Run run = [](Graph& g) {
    const Tensor middle = (g.x.exp() * g.x.sin()).mm(g.w);
    middle.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("no more"); });
    (middle * middle).exp().sum().backward();
  };
  expect_error(run, "no more");
}

TEST_P(ErrorTest, ReportsAnExceptionInANestedBackward) {
  const Run run = [](Graph& g) {
    const Tensor inner = (g.x.sin() * g.x.exp()).sum(), outer = g.x.exp().mm(g.w);
    inner.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("nor here"); });
    outer.register_hook([&](const Tensor& gradient) {
      inner.backward();
      return gradient;
    });
    (outer * outer.sin()).sum().backward();
  };
  expect_error(run, "nor here");
}

/// The exception comes during the backward of a checkpointed module, after its recomputed forward made all
/// tensors.
TEST_P(ErrorTest, ReportsAnExceptionInTheBackwardOfACheckpointedModule) {
  const Run run = [](Graph& g) {
    torch::jit::Module model = model_for_checkpointing(g.x.device());
    const CheckpointedModules checkpointed(model, {"*"}, g.x.device());
    const Tensor x = g.x * 1;
    x.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("no more"); });
    model.forward({x, g.w}).toTensor().backward();
  };
  expect_error(run, "no more");
}

TEST_P(ErrorTest, AnInPlaceEditOfACheckpointedModulesInputIsRefused) {
  const Run run = [](Graph& g) {
    torch::jit::Module model = model_for_checkpointing(g.x.device());
    const CheckpointedModules checkpointed(model, {"*"}, g.x.device());
    const Tensor w = g.w * 1;
    const Tensor loss = model.forward({g.x, w}).toTensor();
    w.mul_(2);
    loss.backward();
  };
  expect_error(run, "modified by an inplace operation");
}

/// The refusal comes in the middle of a backward, after the backward of other micro-batches.
TEST_P(ErrorTest, AnInPlaceEditOfALayerSlicesInputIsRefused) {
  for (const int microbatches : {1, 2}) {
    const Run run = [microbatches](Graph& g) {
      const torch::jit::Module model = model_for_slices(g.x.device());
      const LayerSlices slices = cut_for(model, g, microbatches);
      const Tensor x = g.x * 1;
      auto inputs = microbatches_of(g, microbatches);
      inputs.back().front() = x;
      SlicedPass pass(slices, inputs);
      const std::vector<Tensor> losses = run_forward(pass);
      x.mul_(2);
      pass.backward(losses);
    };
    expect_error(run, "modified by an inplace operation");
  }
}

TEST_P(ErrorTest, BackwardOverAFreedGraphIsRefused) {
  const Run run = [](Graph& g) {
    const Tensor loss = graphs::chain(g);
    loss.backward();
    loss.backward();
  };
  expect_error(run, "Trying to backward through the graph a second time");
}

INSTANTIATE_TEST_SUITE_P(, ErrorTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

// --- Several steps ---

class StepsTest : public ErrorTest {};

TEST_P(StepsTest, AGraphThatOutlivesItsStepStillWorks) {
  const std::vector<at::Tensor> expected =
      gradients([](Graph& g) { graphs::shared_subgraph(g).backward(); }, std::nullopt);
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left([&] {
      at::manual_seed(kSeed);
      Graph graph(device().torch_device()), other(device().torch_device());
      Tensor loss;
      run_step(policy, [&] { loss = graphs::shared_subgraph(graph); });
      run_step(policy, [&] { graphs::chain(other).backward(); });
      loss.backward();
      expect_equal({graph.x.grad(), graph.w.grad()}, expected);
    });
  }
}

TEST_P(StepsTest, AGraphThatOutlivesItsStepUnusedLeavesNothing) {
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_nothing_left([&] {
      Graph graph(device().torch_device());
      Tensor loss;
      run_step(policy, [&] { loss = graphs::shared_subgraph(graph); });
    });
  }
}

/// Two models, one of which runs its step within the forward of the other.
TEST_P(StepsTest, ModelsRunSeparateSteps) {
  const Run chain = [](Graph& g) { graphs::chain(g).backward(); };
  const auto interrupted = [](Graph& g, const std::function<void()>& by) {
    const Tensor loss = graphs::classifier(g);
    by();
    (loss + (g.x * 2).exp().mul(g.w.t()).sin().sum()).backward();
  };
  const std::vector<at::Tensor> expected = gradients(chain, std::nullopt);
  const std::vector<at::Tensor> others = gradients([&](Graph& g) { interrupted(g, [] {}); }, std::nullopt);
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    const auto step_of_the_chain = [&] { expect_equal(gradients(chain, policy), expected); };
    expect_nothing_left([&] {
      expect_equal(gradients([&](Graph& g) { interrupted(g, step_of_the_chain); }, policy), others);
    });
    const auto ledger_of = [&](const std::function<void()>& by) {
      Graph graph(device().torch_device());
      return run_step(policy, [&] { interrupted(graph, by); })->ledger();
    };
    EXPECT_EQ(ledger_of(step_of_the_chain), ledger_of([] {}));
  }
}

// --- Reasons for keeping tensors ---

TEST_P(StepsTest, KeepsSparseAndQuantisedTensorsAndReportsTheReason) {
  Graph graph(device().torch_device());
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    const auto step = run_step(policy, [&] { sparse_and_quantised_tensors(graph); });
    const auto kept = step->ledger().find({Place::kDevice, PlacementReason::kUnsupportedLayout});
    ASSERT_NE(kept, step->ledger().end());
    EXPECT_EQ(kept->second.tensors, 4);
  }
}

TEST_P(StepsTest, KeepsTensorsThatExceedTheHostLimitAndReportsTheReason) {
  const Run run = [](Graph& g) { graphs::chain(g).backward(); };
  Policy policy = hazard_policies().front();
  policy.host_memory_bytes = 48 * 8 - 1;  // less than either leaf
  const std::vector<at::Tensor> expected = gradients(run, std::nullopt);
  expect_nothing_left([&] { expect_equal(gradients(run, policy), expected); });
  Graph graph(device().torch_device());
  const auto step = run_step(policy, [&] { run(graph); });
  EXPECT_TRUE(step->ledger().contains({Place::kDevice, PlacementReason::kHostFull}));
  EXPECT_LE(step->host_peak_bytes(), *policy.host_memory_bytes);
}

TEST_P(StepsTest, TensorsThatExceedHostMemoryAreAnErrorIfThePolicyHasNoLimit) {
  device().set_host_capacity(48 * 8 - 1);
  const Run run = [](Graph& g) { graphs::chain(g).backward(); };
  for (const Policy& policy : policies_here()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    const bool stays = !policy.rules.empty() && policy.rules.back().placement.place == Place::kDevice;
    if (policy.host_memory_bytes || stays) continue;
    expect_nothing_left([&] {
      EXPECT_THAT(message_of([&] { gradients(run, policy); }),
                  HasSubstr("host memory for offloaded tensors is exhausted"));
    });
    EXPECT_TRUE(device().take_host_refusal().has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(, StepsTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof
