#include "engine/autograd/autograd_engine.h"

#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <stdexcept>

#include "tests/support/graph_cases.h"
#include "tests/support/torch_test.h"

namespace offprof {
namespace {

using testing::HasSubstr;

Policy with_stash_bytes(Policy policy, Bytes bytes) {
  policy.stash_bytes = bytes;
  return policy;
}

/// Returns `keep` first; every other policy must give the same gradients.
std::vector<Policy> every_policy() {
  return {test_policy("keep", std::nullopt, std::nullopt),
          test_policy("offload", 0, std::nullopt),
          test_policy("offload", 200, std::nullopt),
          test_policy("offload", 0, 2),
          with_stash_bytes(test_policy("offload", 0, std::nullopt), 800),
          test_policy("offload", 0, std::nullopt, 1000),
          test_policy("offload", 0, 3, 1 << 20),
          test_policy("trl", 0, 0),
          test_policy("trl", 0, 3),
          test_policy("trl", 200, 5)};
}

std::vector<Policy> policies_of(SchedulerKind kind) {
  std::vector<Policy> policies = every_policy();
  std::erase_if(policies, [&](const Policy& policy) { return policy.scheduler != kind; });
  return policies;
}

class AutogradEngineTest : public TorchTest {
 protected:
  /// Returns the leaves' gradients, from the same numbers each time. Frees everything else.
  std::vector<Tensor> gradients(Tensor (*loss)(Graph&), const std::optional<Policy>& policy) {
    at::manual_seed(kSeed);
    Graph graph;
    const auto work = [&] { loss(graph).backward(); };
    if (policy) {
      run_step(*policy, work);
    } else {
      work();
    }
    return {graph.x.grad(), graph.w.grad()};
  }

  /// Runs `work` under each policy and expects that it leaves nothing on the device or in host memory.
  void under(const std::vector<Policy>& policies, const std::function<void(const Policy&)>& work) {
    for (const Policy& policy : policies) {
      SCOPED_TRACE(policy.name + ": " + describe(policy));
      const Bytes before = live_bytes();
      work(policy);
      EXPECT_EQ(live_bytes(), before);
      EXPECT_EQ(device_.host_used_bytes(), 0);
    }
  }
};

/// Tensors are freed early, not only at the end of the step that holds them.
TEST_F(AutogradEngineTest, FreesASavedTensorWhenAutogradReleasesIt) {
  for (const Policy& policy : every_policy()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    Graph graph;
    run_step(policy, [&] {
      const Bytes before = live_bytes();
      { const Tensor loss = graph.x.exp().exp().sum(); }
      EXPECT_EQ(live_bytes(), before);
      EXPECT_EQ(device_.host_used_bytes(), 0);
    });
  }
}

class GradientTest : public AutogradEngineTest, public testing::WithParamInterface<GraphCase> {};

TEST_P(GradientTest, IsBitwiseEqualToPlainAutogradAndLeavesNoMemory) {
  const std::vector<Tensor> expected = gradients(GetParam().loss, std::nullopt);
  under(every_policy(), [&](const Policy& policy) {
    const std::vector<Tensor> actual = gradients(GetParam().loss, policy);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(bitwise_equal(actual[i], expected[i])) << i;
  });
}

INSTANTIATE_TEST_SUITE_P(Graphs, GradientTest, testing::ValuesIn(kGraphCases),
                         [](const auto& graph) { return std::string(graph.param.name); });

TEST_F(AutogradEngineTest, SavesNothingIfNoStepIsCurrent) {
  const auto step = make_step(preset_policy("offload"));
  Graph graph;
  graphs::chain(graph).backward();
  EXPECT_TRUE(step->ledger().empty());
}

TEST_F(AutogradEngineTest, SavesNothingWithoutGradients) {
  Graph graph;
  const auto step = run_step(preset_policy("offload"), [&] {
    const at::NoGradGuard no_grad;
    graphs::chain(graph);
  });
  EXPECT_TRUE(step->ledger().empty());
}

TEST_F(AutogradEngineTest, EditInPlaceAfterPackRaisesAutogradsOwnError) {
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    const auto work = [&] {
      Tensor h = graph.x * 2;
      const Tensor loss = h.sin().sum();
      h.select(0, 1).mul_(3);
      loss.backward();
    };
    EXPECT_THAT(
        message_of<c10::Error>([&] { run_step(policy, work); }),
        HasSubstr("one of the variables needed for gradient computation has been modified by an inplace "
                  "operation: [Double [6, 8]] is at version 1; expected version 0 instead"));
  });
}

TEST_F(AutogradEngineTest, ErrorBetweenTwoUnpacksOfANodeLeavesNoMemory) {
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    const auto work = [&] {
      const Tensor a = graph.x * 2, b = graph.x * 3;
      const Tensor loss = (a * b).sum();
      a.mul_(3);
      loss.backward();
    };
    EXPECT_THROW(run_step(policy, work), c10::Error);
  });
}

TEST_F(AutogradEngineTest, RetainedGraphCanBeRunAgain) {
  const std::vector<Tensor> once = gradients(graphs::chain, std::nullopt);
  under(policies_of(SchedulerKind::kOffload), [&](const Policy& policy) {
    const auto twice = [](Graph& g) {
      const Tensor loss = graphs::chain(g);
      loss.backward({}, /*retain_graph=*/true);
      return loss;
    };
    EXPECT_TRUE(bitwise_equal(gradients(twice, policy)[0], once[0] * 2));
  });
}

TEST_F(AutogradEngineTest, RejectsASecondRunOfARetainedGraphUnderTrl) {
  under(policies_of(SchedulerKind::kTrl), [&](const Policy& policy) {
    Graph graph;
    const auto work = [&] {
      const Tensor loss = graphs::chain(graph);
      loss.backward({}, /*retain_graph=*/true);
      loss.backward();
    };
    EXPECT_THAT(message_of<c10::Error>([&] { run_step(policy, work); }),
                HasSubstr("backward unpacked a saved tensor that the policy's rules had released"));
  });
}

TEST_F(AutogradEngineTest, AutogradRejectsAFreedGraph) {
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    const auto work = [&] {
      const Tensor loss = graphs::chain(graph);
      loss.backward();
      loss.backward();
    };
    EXPECT_THAT(message_of<c10::Error>([&] { run_step(policy, work); }),
                HasSubstr("Trying to backward through the graph a second time"));
  });
}

Tensor gradient_penalty(Graph& g) {
  const Tensor loss = graphs::chain(g);
  const std::vector<Tensor> first =
      torch::autograd::grad({loss}, {g.x}, {}, std::nullopt, /*create_graph=*/true);
  return loss + first[0].pow(2).sum();
}

TEST_F(AutogradEngineTest, DoubleBackwardGivesTheSameGradients) {
  const std::vector<Tensor> expected = gradients(gradient_penalty, std::nullopt);
  under(policies_of(SchedulerKind::kOffload), [&](const Policy& policy) {
    const std::vector<Tensor> actual = gradients(gradient_penalty, policy);
    EXPECT_TRUE(bitwise_equal(actual[0], expected[0]));
    EXPECT_TRUE(bitwise_equal(actual[1], expected[1]));
  });
}

TEST_F(AutogradEngineTest, ExceptionInForwardLeavesNoMemoryAndACleanNextStep) {
  const std::vector<Tensor> expected = gradients(graphs::chain, std::nullopt);
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    const auto failing = [&] { (graph.x.exp().sin().mm(graph.w) * 2).exp().mm(graph.x.mm(graph.x)); };
    EXPECT_THROW(run_step(policy, failing), c10::Error);
    EXPECT_TRUE(bitwise_equal(gradients(graphs::chain, policy)[0], expected[0]));
  });
}

TEST_F(AutogradEngineTest, ExceptionInBackwardLeavesNoMemory) {
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    const auto failing = [&] {
      const Tensor h = graph.x.exp() * graph.x.sin();
      const Tensor middle = h.mm(graph.w);
      middle.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("no more"); });
      (middle * middle).exp().sum().backward();
    };
    EXPECT_THROW(run_step(policy, failing), std::runtime_error);
  });
}

TEST_F(AutogradEngineTest, ForwardWithoutBackwardLeavesNoMemory) {
  under(every_policy(), [&](const Policy& policy) {
    Graph graph;
    run_step(policy, [&] { graphs::chain(graph); });
  });
}

TEST_F(AutogradEngineTest, GraphThatOutlivesItsStepStillWorks) {
  const std::vector<Tensor> expected = gradients(graphs::chain, std::nullopt);
  under(every_policy(), [&](const Policy& policy) {
    at::manual_seed(kSeed);
    Graph graph;
    Tensor loss;
    run_step(policy, [&] { loss = graphs::chain(graph); });
    Graph other;
    run_step(policy, [&] { graphs::chain(other).backward(); });
    loss.backward();
    EXPECT_TRUE(bitwise_equal(graph.x.grad(), expected[0]));
  });
}

TEST_F(AutogradEngineTest, BackwardMayRunInAnotherOrderThanTheRecordedOne) {
  const std::vector<Tensor> expected = gradients(graphs::chain, std::nullopt);
  const Policy policy = test_policy("offload", 0, 1, 1000);
  at::manual_seed(kSeed);
  Graph graph;
  const std::vector<SavedId> order{1, 0, 99, 3, 2, 2};
  auto step = std::make_shared<OffloadStep>(device_, policy, order, residents_, nullptr);
  {
    const CurrentStep current(step);
    graphs::chain(graph).backward();
  }
  EXPECT_TRUE(bitwise_equal(graph.x.grad(), expected[0]));
}

}  // namespace
}  // namespace offprof
