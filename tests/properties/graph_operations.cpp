#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "tests/hazards/leftovers.h"
#include "tests/properties/operations.h"
#include "tests/properties/pool.h"

namespace offprof {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// --- Edits in place, some of which autograd refuses ---

void add_in_place(Pool& pool, const Instruction& i) {
  Tensor& t = pool.at(i.first);
  t.add_(fitted(pool.at(i.second), t.sizes()));
}

void multiply_in_place(Pool& pool, const Instruction& i) {
  Tensor& t = pool.at(i.first);
  t.mul_(fitted(pool.at(i.second), t.sizes()));
}

void scale_in_place(Pool& pool, const Instruction& i) {
  pool.at(i.first).mul_(0.5 + i.number % 3);
}

/// Saves its result.
void activate_in_place(Pool& pool, const Instruction& i) {
  Tensor& t = pool.at(i.first);
  i.number % 2 == 0 ? t.sigmoid_() : t.relu_();
}

Tensor part_of(const Tensor& t, std::int64_t n) {
  return t.dim() == 0 ? t : t.narrow(n % t.dim(), 0, (t.size(n % t.dim()) + 1) / 2);
}

void zero_a_part(Pool& pool, const Instruction& i) {
  part_of(pool.at(i.first), i.number).zero_();
}

void overwrite_a_part(Pool& pool, const Instruction& i) {
  Tensor part = part_of(pool.at(i.first), i.number);
  part.copy_(fitted(pool.at(i.second), part.sizes()));
}

/// Changes a leaf like an optimizer.
void change_a_leaf(Pool& pool, const Instruction& i) {
  const at::NoGradGuard no_grad;
  pool.leaf(i.first).mul_(0.5);
}

// --- Operations on the graph ---

void run_backward(const Tensor& loss, bool keeps_graph) {
  if (!loss.requires_grad()) return;
  loss.backward({}, keeps_graph);
  settle_autograd(loss.device());
}

void backward(Pool& pool, const Instruction& i) {
  const Tensor loss = total(pool.at(i.first));
  pool.keep_leaves_only();
  run_backward(loss, false);
}

void backward_and_keep_the_graph(Pool& pool, const Instruction& i) {
  run_backward(total(pool.at(i.first)), true);
}

/// Runs backward and keeps the tensors; later uses of them may fail.
void backward_and_keep_tensors(Pool& pool, const Instruction& i) {
  run_backward(total(pool.at(i.first)), false);
}

Tensor gradient_of_leaf(Pool& pool, const Instruction& i, bool creates_graph) {
  const Tensor loss = total(pool.at(i.first));
  if (!loss.requires_grad()) return {};
  const Tensor gradient = torch::autograd::grad({loss}, {pool.leaf(i.second)}, {}, /*retain_graph=*/true,
                                                creates_graph, /*allow_unused=*/true)[0];
  settle_autograd(loss.device());
  return gradient;
}

/// Adds the gradient to the pool.
void gradient(Pool& pool, const Instruction& i) {
  const Tensor gradient = gradient_of_leaf(pool, i, false);
  if (gradient.defined()) pool.add(gradient);
}

/// Adds a gradient that has a gradient itself.
void gradient_with_graph(Pool& pool, const Instruction& i) {
  const Tensor gradient = gradient_of_leaf(pool, i, true);
  if (gradient.defined()) pool.add(gradient.pow(2));
}

void add_loss(Pool& pool, const Instruction& i) {
  pool.add_loss(total(pool.at(i.first)));
}

void drop(Pool& pool, const Instruction& i) {
  pool.drop(i.first);
}

void without_gradient(Pool& pool, const Instruction& i) {
  const at::NoGradGuard no_grad;
  pool.add((pool.at(i.first) * 2).exp().clamp_max(5));
}

/// Adds a hook to a new tensor.
void change_gradient(Pool& pool, const Instruction& i) {
  const Tensor t = pool.at(i.first) * 1;
  if (t.requires_grad()) t.register_hook([](const Tensor& gradient) { return gradient * 0.5 + 1; });
  pool.add(t);
}

Tensor region(const Tensor& input, std::int64_t kind) {
  if (kind % 3 == 0) return (input.sin() * input).tanh();
  if (kind % 3 == 1) return input.sigmoid() * input.pow(2);
  return (input.reshape({1, input.numel()}) * 2).softmax(1).exp();
}

/// Re-entrant checkpointed region: backward runs it again, with its own backward inside.
class Checkpoint final : public torch::autograd::Function<Checkpoint> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& input, std::int64_t kind) {
    context->save_for_backward({input});
    context->saved_data["kind"] = kind;
    const at::NoGradGuard no_grad;
    return region(input, kind);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor input = context->get_saved_variables()[0].detach().set_requires_grad(true);
    const at::AutoGradMode with_grad(true);
    region(input, context->saved_data["kind"].toInt()).backward(gradients[0]);
    return {input.grad(), Tensor()};
  }
};

void checkpoint(Pool& pool, const Instruction& i) {
  pool.add(Checkpoint::apply(pool.at(i.first), std::int64_t{i.number}));
}

constexpr Operation kOperations[] = {
    {"add_", 2, nullptr, add_in_place},
    {"multiply_", 2, nullptr, multiply_in_place},
    {"scale_", 2, nullptr, scale_in_place},
    {"activate_", 2, nullptr, activate_in_place},
    {"zero_part_", 1, nullptr, zero_a_part},
    {"overwrite_part_", 1, nullptr, overwrite_a_part},
    {"change_leaf_", 1, nullptr, change_a_leaf},
    {"backward", 5, nullptr, backward},
    {"backward_and_keep_graph", 3, nullptr, backward_and_keep_the_graph, true},
    {"backward_and_keep_tensors", 1, nullptr, backward_and_keep_tensors, true},
    {"gradient", 2, nullptr, gradient, true},
    {"gradient_with_graph", 1, nullptr, gradient_with_graph, true},
    {"loss", 5, nullptr, add_loss},
    {"drop", 5, nullptr, drop},
    {"no_grad", 2, nullptr, without_gradient},
    {"hook", 2, nullptr, change_gradient},
    {"checkpoint", 4, nullptr, checkpoint},
};

}  // namespace

std::span<const Operation> graph_operations() {
  return kOperations;
}

}  // namespace offprof
