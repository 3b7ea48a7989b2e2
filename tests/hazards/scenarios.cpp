#include "tests/hazards/scenarios.h"

#include <ATen/Context.h>
#include <ATen/Generator.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <thread>

#include "tests/hazards/module_scenarios.h"

namespace offprof {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// --- Several passes in a step ---

using Loss = LossScenario::Loss;

Tensor branch(Graph& g, double scale) {
  return ((g.x * scale).exp().mm(g.w).tanh().sin() * scale).sum();
}

void retained_graph(Graph& g, const Loss& loss) {
  const Tensor retained = loss(g, 0.5);
  retained.backward({}, /*retain_graph=*/true);
  retained.backward();
}

/// Computes a gradient penalty: the gradient of a gradient.
void double_backward(Graph& g, const Loss& loss) {
  const Tensor once = loss(g, 0.5);
  const variable_list first =
      torch::autograd::grad({once}, {g.x}, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/true);
  (once + first[0].pow(2).sum()).backward();
}

void two_forwards_one_backward(Graph& g, const Loss& loss) {
  const Tensor first = loss(g, 0.5), second = loss(g, 2);
  (first + second).backward();
}

void backward_first_in_first_out(Graph& g, const Loss& loss) {
  const Tensor first = loss(g, 0.5), second = loss(g, 2);
  first.backward();
  second.backward();
}

void interleaved_micro_batches(Graph& g, const Loss& loss) {
  const Tensor first = loss(g, 0.5), second = loss(g, 1);
  first.backward();
  const Tensor third = loss(g, 2);
  third.backward();
  const Tensor fourth = loss(g, 0.25);
  second.backward();
  fourth.backward();
}

void accumulated_gradients(Graph& g, const Loss& loss) {
  for (const double scale : {0.5, 1.0, 2.0}) loss(g, scale).backward();
}

void unused_branch(Graph& g, const Loss& loss) {
  g.alive.push_back(loss(g, 3));
  loss(g, 0.5).backward();
}

void dropped_graph_between(Graph& g, const Loss& loss) {
  const Tensor used = loss(g, 0.5);
  loss(g, 3);
  used.backward();
}

void forward_without_gradients_between(Graph& g, const Loss& loss) {
  const Tensor used = loss(g, 0.5);
  {
    const at::NoGradGuard no_grad;
    loss(g, 3);
  }
  used.backward();
}

void forward_alone(Graph& g, const Loss& loss) {
  loss(g, 0.5);
}

void gradient_of_one_leaf(Graph& g, const Loss& loss) {
  g.x.mutable_grad() = torch::autograd::grad({loss(g, 0.5)}, {g.x})[0];
}

void backward_from_another_thread(Graph& g, const Loss& loss) {
  const Tensor made_here = loss(g, 0.5);
  std::thread([&] { made_here.backward(); }).join();
}

constexpr LossScenario kLossScenarios[] = {
    {"RetainedGraph", retained_graph, true},
    {"DoubleBackward", double_backward, true},
    {"TwoForwardsOneBackward", two_forwards_one_backward},
    {"BackwardFirstInFirstOut", backward_first_in_first_out},
    {"InterleavedMicroBatches", interleaved_micro_batches},
    {"AccumulatedGradients", accumulated_gradients},
    {"UnusedBranch", unused_branch},
    {"DroppedGraphBetween", dropped_graph_between},
    {"ForwardWithoutGradientsBetween", forward_without_gradients_between},
    {"ForwardAlone", forward_alone, false, false, false},
    {"GradientOfOneLeaf", gradient_of_one_leaf},
    {"BackwardFromAnotherThread", backward_from_another_thread, false, true},
};

void shared_subgraph_twice(Graph& g) {
  const Tensor shared = g.x.exp().mm(g.w).tanh();
  shared.sin().sum().backward({}, /*retain_graph=*/true);
  shared.cos().pow(2).sum().backward();
}

void backward_with_hooks(Graph& g) {
  const Tensor middle = g.x.exp().mm(g.w);
  middle.register_hook([](const Tensor& gradient) { return gradient * 0.5 + 1; });
  middle.retain_grad();
  (middle.sin() * middle).sum().backward();
}

void forward_from_another_thread(Graph& g) {
  Tensor loss;
  std::thread([&] { loss = graphs::shared_subgraph(g); }).join();
  loss.backward();
}

/// Computes with whole numbers only, since backward sums in the order in which threads arrive. Has no matrix
/// products, because each thread has a workspace for them.
Tensor whole_branch(Graph& g, int scale) {
  const Tensor x = g.x + (g.x.round() - g.x).detach(), w = g.w + (g.w.round() - g.w).detach();
  return ((x * scale).pow(2) * w.t().pow(2)).pow(2).sum();
}

/// Runs forward like a module that forks.
void forward_on_several_threads_at_once(Graph& g) {
  std::vector<Tensor> losses(4);
  std::vector<std::thread> threads;
  for (Tensor& loss : losses)
    threads.emplace_back([&] {
      loss = whole_branch(g, 0);
      for (int scale = 1; scale < 20; ++scale) loss = loss + whole_branch(g, scale);
    });
  for (std::thread& thread : threads) thread.join();
  (losses[0] + losses[1] + losses[2] + losses[3]).backward();
}

/// Runs backward like an application that trains parts of its model on separate threads.
void backward_on_several_threads_at_once(Graph& g) {
  std::vector<Tensor> gradients(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    threads.emplace_back([&, i] {
      Tensor loss = whole_branch(g, 0);
      for (int scale = 1; scale < 20; ++scale) loss = loss + whole_branch(g, scale);
      gradients[i] = torch::autograd::grad({loss}, {g.x})[0];
    });
  for (std::thread& thread : threads) thread.join();
  g.x.mutable_grad() = (gradients[0] + gradients[1] + gradients[2] + gradients[3]).detach();
}

/// Draws dropout masks. The generator must be in the same state as with plain autograd, whatever moves in
/// between.
void masks_of_dropout(Graph& g) {
  const auto layers = [&](double scale) {
    const Tensor h = at::dropout((g.x * scale).sin(), 0.3, true);
    return at::dropout(h.mm(g.w).tanh(), 0.5, true).pow(2).sum();
  };
  const Tensor first = layers(2);
  const Tensor second = layers(3);
  first.backward();
  const Tensor third = layers(4) * at::rand_like(first);
  third.backward();
  second.backward();
}

/// Has so many nodes that a recursion over them would overflow the stack.
void deep_graph(Graph& g) {
  constexpr int kNodes = 2000;
  Tensor h = g.x;
  for (int node = 0; node < kNodes; ++node) h = h.sin();
  h.sum().backward();
}

// --- Backward within backward ---

using Region = std::function<Tensor(const Tensor&)>;

/// Re-entrant checkpointed region. Forward saves only its input, and backward runs it again with its own
/// backward inside.
class Checkpoint final : public torch::autograd::Function<Checkpoint> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, const Region* region) {
    context->save_for_backward({input});
    context->saved_data["region"] = reinterpret_cast<std::int64_t>(region);
    const at::NoGradGuard no_grad;
    return (*region)(input);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor input = context->get_saved_variables()[0].detach().set_requires_grad(true);
    const auto* region = reinterpret_cast<const Region*>(context->saved_data["region"].toInt());
    const at::AutoGradMode with_grad(true);
    const Tensor output = (*region)(input);
    output.backward(gradients[0]);
    return {input.grad(), Tensor()};
  }
};

void checkpointed_regions(Graph& g) {
  const Region first = [](const Tensor& h) { return (h.sin() * h).exp().tanh(); };
  const Region second = [&](const Tensor& h) { return h.mm(g.w.detach()).sigmoid().mm(g.w.detach().t()); };
  const Tensor h = Checkpoint::apply(g.x * 2, &first);
  const Tensor k = Checkpoint::apply(h * h, &second);
  (k * h).sum().backward();
}

/// Restores the generator's state as checkpoints do, so that backward draws the mask of forward again.
void checkpointed_dropout(Graph& g) {
  at::Generator generator = at::globalContext().defaultGenerator(g.x.device());
  const Tensor at_forward = generator.get_state();
  const Region region = [&](const Tensor& h) {
    const bool is_backward = at::GradMode::is_enabled();
    const Tensor now = generator.get_state();
    if (is_backward) generator.set_state(at_forward);
    const Tensor result = at::dropout(h.exp(), 0.5, true) * h;
    if (is_backward) generator.set_state(now);
    return result;
  };
  const Tensor h = Checkpoint::apply(g.x * 2, &region);
  at::dropout(h, 0.5, true).pow(2).sum().backward();
}

/// Runs the backward of another graph within the backward of one.
void reentrant_backward(Graph& g) {
  const Tensor inner = branch(g, 0.5), outer = g.x.exp().mm(g.w);
  outer.register_hook([&](const Tensor& gradient) {
    inner.backward();
    return gradient;
  });
  (outer * outer.sin()).sum().backward();
}

const Scenario kScenarios[] = {
    {.name = "SharedSubgraphTwice", .run = shared_subgraph_twice, .asks_again = true},
    {.name = "BackwardWithHooks", .run = backward_with_hooks},
    {.name = "ForwardFromAnotherThread",
     .run = forward_from_another_thread,
     .starts_threads = true,
     .can_recompute = false},
    {.name = "ForwardOnSeveralThreadsAtOnce",
     .run = forward_on_several_threads_at_once,
     .has_threads = true,
     .starts_threads = true},
    {.name = "BackwardOnSeveralThreadsAtOnce",
     .run = backward_on_several_threads_at_once,
     .has_threads = true,
     .starts_threads = true},
    {.name = "MasksOfDropout", .run = masks_of_dropout},
    {.name = "DeepGraph", .run = deep_graph},
    {.name = "CheckpointedRegions", .run = checkpointed_regions},
    {.name = "CheckpointedDropout", .run = checkpointed_dropout},
    {.name = "ReentrantBackward", .run = reentrant_backward},
};

}  // namespace

std::span<const LossScenario> loss_scenarios() {
  return kLossScenarios;
}

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> scenarios = saved_tensor_scenarios();
  const auto add = [&](const auto& more) {
    scenarios.insert(scenarios.end(), std::begin(more), std::end(more));
  };
  for (const LossScenario& each : loss_scenarios())
    scenarios.push_back({.name = each.name,
                         .run = [run = each.run](Graph& g) { run(g, branch); },
                         .asks_again = each.asks_again,
                         .starts_threads = each.starts_threads,
                         .can_recompute = each.can_recompute});
  add(kScenarios);
  add(module_scenarios());
  for (const GraphCase& graph : kGraphCases)
    scenarios.push_back({.name = graph.name, .run = [loss = graph.loss](Graph& g) { loss(g).backward(); }});
  return scenarios;
}

}  // namespace offprof
