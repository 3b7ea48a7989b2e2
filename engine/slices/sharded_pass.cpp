#include "engine/slices/sharded_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>
#include <utility>

#include "engine/checkpointing/segment_run.h"
#include "engine/torch/ivalue_tensors.h"
#include "traces/base/check.h"

namespace offprof {

using torch::autograd::Edge;

namespace {

void add_to_gradient(const at::Tensor& weight, at::Tensor gradient) {
  const at::NoGradGuard no_grad;
  if (weight.grad().defined())
    weight.mutable_grad().add_(gradient);
  else
    weight.mutable_grad() = std::move(gradient);
}

}  // namespace

/// Sets aside the gradients of a slice's shared parameters while this object lives, so that autograd adds up
/// this micro-batch's gradient alone. After the first slice that uses a parameter, the sum is added to the
/// gradient of the other micro-batches.
class ShardedPass::SharedWeightScope {
 public:
  SharedWeightScope(const Shard& shard, Microbatch& microbatch, Roots& roots)
      : shard_(shard), microbatch_(microbatch) {
    for (const Shard::SharedWeight& shared : shard_.shared) {
      aside_.push_back(std::exchange(shared.weight.mutable_grad(), at::Tensor()));
      const auto later = microbatch_.shared_gradients.extract(shared.weight.unsafeGetTensorImpl());
      if (!later.empty())
        roots.add({torch::autograd::impl::grad_accumulator(shared.weight), 0}, std::move(later.mapped()));
    }
  }

  ~SharedWeightScope() {
    if (!is_done_)
      for (std::size_t i = 0; i < aside_.size(); ++i) shard_.shared[i].weight.mutable_grad() = aside_[i];
  }
  SharedWeightScope(const SharedWeightScope&) = delete;
  SharedWeightScope& operator=(const SharedWeightScope&) = delete;

  void done() {
    is_done_ = true;
    for (std::size_t i = 0; i < aside_.size(); ++i) {
      const auto& [weight, is_first] = shard_.shared[i];
      at::Tensor gradient = std::exchange(weight.mutable_grad(), std::move(aside_[i]));
      if (!gradient.defined()) continue;
      if (is_first)
        add_to_gradient(weight, std::move(gradient));
      else
        microbatch_.shared_gradients.emplace(weight.unsafeGetTensorImpl(), std::move(gradient));
    }
  }

 private:
  const Shard& shard_;
  Microbatch& microbatch_;
  std::vector<at::Tensor> aside_;  ///< by shared parameter
  bool is_done_ = false;
};

ShardedPass::ShardedPass(const Shards& shards, std::vector<std::vector<c10::IValue>> microbatches)
    : shards_(shards),
      pager_(microbatches.size() > 1 ? WeightPager::current() : nullptr),
      first_allocation_(pager_ != nullptr ? pager_->next_allocation() : 0),
      arguments_(microbatches.front().size()),
      random_(static_cast<std::int64_t>(microbatches.size()), shards.device()) {
  for (std::vector<c10::IValue>& inputs : microbatches) {
    Microbatch& microbatch = microbatches_.emplace_back(Microbatch{std::vector<Value>(shards.values())});
    microbatch.calls.resize(shards.shards().size() + 1);
    for (std::size_t i = 0; i < inputs.size(); ++i) hold(microbatch.values[i], std::move(inputs[i]));
  }
}

std::vector<c10::IValue> ShardedPass::forward() {
  for (const Shard& shard : shards_.shards()) {
    for (std::size_t i = 0; i < microbatches_.size(); ++i) {
      const MicrobatchRandom::Turn turn(random_, i);
      run(shard, microbatches_[i]);
    }
  }
  std::vector<c10::IValue> results;
  for (Microbatch& microbatch : microbatches_) {
    results.push_back(enter(shards_.result(), microbatch, microbatch.calls.back()));
    microbatch.values[shards_.result()].value = {};
  }
  return results;
}

void ShardedPass::run(const Shard& shard, Microbatch& microbatch) {
  Call& call = microbatch.calls[&shard - shards_.shards().data()];
  std::vector<c10::IValue> arguments = {shards_.model()._ivalue()};
  for (const ValueId input : shard.inputs) arguments.push_back(enter(input, microbatch, call));
  const auto unowned = std::shared_ptr<const SegmentModule>(std::shared_ptr<void>(), &shard.module);
  const c10::IValue result = std::make_shared<SegmentRun>(unowned)->first_run(std::move(arguments));
  const auto results = result.toTuple();
  for (std::size_t i = 0; i < shard.outputs.size(); ++i)
    hold(microbatch.values[shard.outputs[i]], results->elements()[i]);
  for (const ValueId input : shard.last_uses) microbatch.values[input].value = {};
}

/// Returns the value for a slice that reads it. The boundary replaces its history.
c10::IValue ShardedPass::enter(ValueId id, Microbatch& microbatch, Call& call) const {
  if (call.boundary == nullptr) call.boundary = Boundary::make();
  std::size_t next = 0;
  return with_tensors_replaced(microbatch.values[id].value, [&](const at::Tensor& tensor) {
    const std::size_t index = next++;
    if (is_waiting(tensor)) call.pages.push_back(tensor.storage());
    if (!tensor.defined() || !tensor.requires_grad()) return tensor;
    call.entered.push_back({id, index});
    return call.boundary->enter(tensor);
  });
}

void ShardedPass::hold(Value& value, c10::IValue made) const {
  with_tensors_replaced(made, [&](const at::Tensor& tensor) {
    const bool needs_gradient = tensor.defined() && tensor.requires_grad();
    value.edges.push_back(needs_gradient ? torch::autograd::impl::gradient_edge(tensor) : Edge());
    let_wait(tensor);
    return tensor;
  });
  value.gradients.resize(value.edges.size());
  value.value = std::move(made);
}

void ShardedPass::backward(const std::vector<at::Tensor>& losses) {
  OFFPROF_CHECK(losses.size() == microbatches_.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Roots roots;
    roots.add(torch::autograd::impl::gradient_edge(losses[i]), at::ones_like(losses[i]));
    go_back(roots);
    take_gradients(std::exchange(microbatches_[i].calls.back(), {}), microbatches_[i]);
  }
  for (const Shard& shard : std::views::reverse(shards_.shards()))
    for (Microbatch& microbatch : microbatches_) go_back(shard, microbatch);
  for (Microbatch& microbatch : microbatches_) {
    Roots roots;  // for inputs of the model that need gradients
    for (Value& value : microbatch.values) add_roots(value, roots);
    go_back(roots);
    add_left_over(microbatch);
  }
}

/// Adds the gradients of shared parameters that got none from their first slice.
void ShardedPass::add_left_over(Microbatch& microbatch) const {
  for (const Shard& shard : shards_.shards())
    for (const Shard::SharedWeight& shared : shard.shared)
      if (auto later = microbatch.shared_gradients.extract(shared.weight.unsafeGetTensorImpl()))
        add_to_gradient(shared.weight, std::move(later.mapped()));
}

void ShardedPass::go_back(const Shard& shard, Microbatch& microbatch) {
  Call call = std::exchange(microbatch.calls[&shard - shards_.shards().data()], {});
  Roots roots;
  for (const ValueId output : shard.outputs) add_roots(microbatch.values[output], roots);
  if (roots.edges.empty()) return;
  // Gradients of its inputs from later slices come first, in the order of plain autograd.
  for (std::size_t i = 0; i < call.entered.size(); ++i) {
    const auto& [value, tensor] = call.entered[i];
    at::Tensor& so_far = microbatch.values[value].gradients[tensor];
    if (so_far.defined()) roots.add(call.boundary->edge(i), std::exchange(so_far, at::Tensor()));
  }
  SharedWeightScope shared(shard, microbatch, roots);
  go_back(roots);
  shared.done();
  take_gradients(std::move(call), microbatch);
}

void ShardedPass::Roots::add(Edge edge, at::Tensor gradient) {
  edges.push_back(std::move(edge));
  gradients.push_back(std::move(gradient));
}

void ShardedPass::add_roots(Value& value, Roots& roots) {
  for (std::size_t i = 0; i < value.edges.size(); ++i)
    if (value.gradients[i].defined()) roots.add(std::move(value.edges[i]), std::move(value.gradients[i]));
  value.edges.clear();
  value.gradients.clear();
}

void ShardedPass::go_back(const Roots& roots) {
  if (roots.edges.empty()) return;
  torch::autograd::Engine::get_default_engine().execute(roots.edges, roots.gradients, /*keep_graph=*/false,
                                                        /*create_graph=*/false, /*accumulate_grad=*/true);
}

void ShardedPass::take_gradients(Call call, Microbatch& microbatch) const {
  std::vector<at::Tensor> gradients = call.boundary->take_gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const auto& [value, tensor] = call.entered[i];
    if (value >= arguments_) let_wait(gradients[i]);  // an argument's gradient may become its `grad`
    microbatch.values[value].gradients[tensor] = std::move(gradients[i]);
  }
}

/// Offloads a value until it is used, because other micro-batches run before. Values older than the pass,
/// such as inputs, stay.
void ShardedPass::let_wait(const at::Tensor& value) const {
  if (pager_ != nullptr) pager_->adopt_for_step(value, first_allocation_);
}

bool ShardedPass::is_waiting(const at::Tensor& value) const {
  return pager_ != nullptr && value.defined() && value.has_storage() && pager_->is_page(value.storage());
}

}  // namespace offprof
