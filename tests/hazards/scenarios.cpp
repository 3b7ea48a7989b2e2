#include "tests/hazards/scenarios.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <functional>
#include <thread>

namespace offprof {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// --- Several passes in a step ---

Tensor branch(Graph& g, double scale) {
  return ((g.x * scale).exp().mm(g.w).tanh().sin() * scale).sum();
}

void retained_graph(Graph& g) {
  const Tensor loss = graphs::chain(g);
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
}

/// A gradient penalty: the gradient of a gradient.
void double_backward(Graph& g) {
  const Tensor loss = graphs::chain(g);
  const variable_list first =
      torch::autograd::grad({loss}, {g.x}, {}, /*retain_graph=*/std::nullopt, /*create_graph=*/true);
  (loss + first[0].pow(2).sum()).backward();
}

void two_forwards_one_backward(Graph& g) {
  const Tensor first = branch(g, 0.5), second = branch(g, 2);
  (first + second).backward();
}

void backward_first_in_first_out(Graph& g) {
  const Tensor first = branch(g, 0.5), second = branch(g, 2);
  first.backward();
  second.backward();
}

void interleaved_micro_batches(Graph& g) {
  const Tensor first = branch(g, 0.5), second = branch(g, 1);
  first.backward();
  const Tensor third = branch(g, 2);
  third.backward();
  const Tensor fourth = branch(g, 0.25);
  second.backward();
  fourth.backward();
}

void accumulated_gradients(Graph& g) {
  for (const double scale : {0.5, 1.0, 2.0}) branch(g, scale).backward();
}

void shared_subgraph_twice(Graph& g) {
  const Tensor shared = g.x.exp().mm(g.w).tanh();
  shared.sin().sum().backward({}, /*retain_graph=*/true);
  shared.cos().pow(2).sum().backward();
}

void unused_branch(Graph& g) {
  g.alive.push_back(branch(g, 3));
  branch(g, 0.5).backward();
}

void dropped_graph_between(Graph& g) {
  const Tensor loss = branch(g, 0.5);
  branch(g, 3);
  loss.backward();
}

void forward_without_gradients_between(Graph& g) {
  const Tensor loss = branch(g, 0.5);
  {
    const at::NoGradGuard no_grad;
    branch(g, 3);
  }
  loss.backward();
}

void gradient_of_one_leaf(Graph& g) {
  const Tensor loss = graphs::shared_subgraph(g);
  g.x.mutable_grad() = torch::autograd::grad({loss}, {g.x})[0];
}

void backward_with_hooks(Graph& g) {
  const Tensor middle = g.x.exp().mm(g.w);
  middle.register_hook([](const Tensor& gradient) { return gradient * 0.5 + 1; });
  middle.retain_grad();
  (middle.sin() * middle).sum().backward();
}

void backward_from_another_thread(Graph& g) {
  const Tensor loss = graphs::shared_subgraph(g);
  std::thread([&] { loss.backward(); }).join();
}

void forward_from_another_thread(Graph& g) {
  Tensor loss;
  std::thread([&] { loss = graphs::shared_subgraph(g); }).join();
  loss.backward();
}

/// Of whole numbers: backward adds up in the order in which threads came. Without products of matrices, for
/// which each thread has a workspace.
Tensor whole_branch(Graph& g, int scale) {
  const Tensor x = g.x + (g.x.round() - g.x).detach(), w = g.w + (g.w.round() - g.w).detach();
  return ((x * scale).pow(2) * w.t().pow(2)).pow(2).sum();
}

/// As a module does that forks.
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

/// As an application does that trains parts of its model on threads of their own.
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

// --- What is saved ---

/// Saves tensors of every kind of number, of which backward must see each as it was.
class EveryNumber final : public torch::autograd::Function<EveryNumber> {
 public:
  static constexpr at::ScalarType kTypes[] = {
      at::kByte,          at::kChar,        at::kShort,        at::kInt,          at::kLong,
      at::kBool,          at::kHalf,        at::kBFloat16,     at::kFloat,        at::kDouble,
      at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kComplexFloat, at::kComplexDouble};

  static Tensor forward(AutogradContext* context, const Tensor& x) {
    variable_list saved;
    for (const at::ScalarType type : kTypes) saved.push_back(x.detach().abs().to(type));
    context->save_for_backward(saved);
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Tensor gradient = gradients[0] * 2;
    for (const Tensor& saved : context->get_saved_variables()) {
      const Tensor real = saved.is_complex() ? at::real(saved) : saved;
      gradient = gradient + real.to(gradient.scalar_type());
    }
    return {gradient};
  }
};

void every_number_in_a_custom_function(Graph& g) {
  (EveryNumber::apply(g.x * 3) * g.x).sum().backward();
}

/// Saves its input, its output, and something that it made itself.
class CustomProduct final : public torch::autograd::Function<CustomProduct> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    const Tensor output = a.mm(b).tanh();
    context->save_for_backward({a, b, output, at::ones_like(output) * 3});
    return output;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0] * (1 - saved[2] * saved[2]) * saved[3];
    return {gradient.mm(saved[1].t()), saved[0].t().mm(gradient)};
  }
};

void custom_function(Graph& g) {
  const Tensor h = CustomProduct::apply(g.x.exp(), g.w * 0.1);
  (h * h.sin()).sum().backward();
}

Tensor overlapping(const Tensor& h) {
  return h.as_strided({5, 7, 4}, {8, 1, 1});
}

void overlapping_views(Graph& g) {
  const Tensor h = (g.x * 2).contiguous();
  overlapping(h).sin().sum().backward({}, /*retain_graph=*/true);
  (overlapping(h) * overlapping(h).exp()).sum().backward();
}

void broadcast(Graph& g) {
  const Tensor row = (g.x * 2).mean(0, true), column = (g.x * 3).mean(1, true);
  (row * column + row.exp() / (column.pow(2) + 1)).sum().backward();
}

/// Dense in no order of their dimensions: there are holes.
void with_holes(Graph& g) {
  const Tensor h = (g.x * 2).slice(0, 0, 6, 2).slice(1, 1, 8, 3);
  (h.sin() * h.t().contiguous().t().exp()).sum().backward();
}

void views_of_parameters(Graph& g) {
  const Tensor h = g.x.mm(g.w).tanh();
  (h.mm(g.w.t()) * g.x + g.w.view({6, 8}).sin() * g.x.narrow(0, 0, 6)).sum().backward();
}

void tied_weights(Graph& g) {
  g.x.mm(g.w).tanh().mm(g.w.t()).sin().mm(g.w).sum().backward();
}

void written_in_place(Graph& g) {
  Tensor h = g.x * 2;
  const Tensor before = h.exp();  // saves its output, not `h`
  h.mul_(3);
  h.narrow(0, 0, 2).add_(1);
  Tensor k = (h * h + before).add_(1).sigmoid_();
  (k * k).sum().backward();
}

/// A buffer that forward itself writes, older than the step.
void buffers_of_batch_norm(Graph& g) {
  const Tensor mean = at::zeros({3}, g.x.options().requires_grad(false)), variance = at::ones_like(mean);
  Tensor h = graphs::image(g.x);
  for (int layer = 0; layer < 2; ++layer)
    h = at::batch_norm(h, {}, {}, mean, variance, /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false)
            .sin();
  (h * h).sum().backward();
}

// --- Backward within backward ---

using Region = std::function<Tensor(const Tensor&)>;

/// A checkpointed region, re-entrant: forward saves its input alone, and backward runs it again, with a
/// backward of its own inside.
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

/// Backward of one graph runs that of another.
void reentrant_backward(Graph& g) {
  const Tensor inner = branch(g, 0.5), outer = g.x.exp().mm(g.w);
  outer.register_hook([&](const Tensor& gradient) {
    inner.backward();
    return gradient;
  });
  (outer * outer.sin()).sum().backward();
}

const Scenario kScenarios[] = {
    {"RetainedGraph", retained_graph, true},
    {"DoubleBackward", double_backward, true},
    {"TwoForwardsOneBackward", two_forwards_one_backward},
    {"BackwardFirstInFirstOut", backward_first_in_first_out},
    {"InterleavedMicroBatches", interleaved_micro_batches},
    {"AccumulatedGradients", accumulated_gradients},
    {"SharedSubgraphTwice", shared_subgraph_twice, true},
    {"UnusedBranch", unused_branch},
    {"DroppedGraphBetween", dropped_graph_between},
    {"ForwardWithoutGradientsBetween", forward_without_gradients_between},
    {"GradientOfOneLeaf", gradient_of_one_leaf},
    {"BackwardWithHooks", backward_with_hooks},
    {"BackwardFromAnotherThread", backward_from_another_thread},
    {"ForwardFromAnotherThread", forward_from_another_thread},
    {"ForwardOnSeveralThreadsAtOnce", forward_on_several_threads_at_once, false, true},
    {"BackwardOnSeveralThreadsAtOnce", backward_on_several_threads_at_once, false, true},
    {"EveryNumberInACustomFunction", every_number_in_a_custom_function},
    {"CustomFunction", custom_function},
    {"OverlappingViews", overlapping_views},
    {"Broadcast", broadcast},
    {"WithHoles", with_holes},
    {"ViewsOfParameters", views_of_parameters},
    {"TiedWeights", tied_weights},
    {"WrittenInPlace", written_in_place},
    {"BuffersOfBatchNorm", buffers_of_batch_norm},
    {"CheckpointedRegions", checkpointed_regions},
    {"ReentrantBackward", reentrant_backward},
};

}  // namespace

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> scenarios(std::begin(kScenarios), std::end(kScenarios));
  for (const GraphCase& graph : kGraphCases)
    scenarios.push_back({graph.name, [loss = graph.loss](Graph& g) { loss(g).backward(); }});
  return scenarios;
}

}  // namespace offprof
