#include "engine/slices/sliced_pass.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>
#include <utility>

#include "engine/checkpointing/checkpointed_call.h"
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
class SlicedPass::SharedParameterScope {
 public:
  SharedParameterScope(const Slice& slice, Microbatch& microbatch, Roots& roots)
      : slice_(slice), microbatch_(microbatch) {
    for (const Slice::SharedParameter& shared : slice_.shared) {
      aside_.push_back(std::exchange(shared.weight.mutable_grad(), at::Tensor()));
      const auto later = microbatch_.shared_gradients.extract(shared.weight.unsafeGetTensorImpl());
      if (!later.empty())
        roots.add({torch::autograd::impl::grad_accumulator(shared.weight), 0}, std::move(later.mapped()));
    }
  }

  ~SharedParameterScope() {
    if (!is_done_)
      for (std::size_t i = 0; i < aside_.size(); ++i) slice_.shared[i].weight.mutable_grad() = aside_[i];
  }
  SharedParameterScope(const SharedParameterScope&) = delete;
  SharedParameterScope& operator=(const SharedParameterScope&) = delete;

  void done() {
    is_done_ = true;
    for (std::size_t i = 0; i < aside_.size(); ++i) {
      const auto& [weight, is_first] = slice_.shared[i];
      at::Tensor gradient = std::exchange(weight.mutable_grad(), std::move(aside_[i]));
      if (!gradient.defined()) continue;
      if (is_first)
        add_to_gradient(weight, std::move(gradient));
      else
        microbatch_.shared_gradients.emplace(weight.unsafeGetTensorImpl(), std::move(gradient));
    }
  }

 private:
  const Slice& slice_;
  Microbatch& microbatch_;
  std::vector<at::Tensor> aside_;  ///< by shared parameter
  bool is_done_ = false;
};

SlicedPass::SlicedPass(const LayerSlices& slices, std::vector<std::vector<c10::IValue>> microbatches)
    : slices_(slices),
      offloader_(microbatches.size() > 1 ? ParameterOffloader::current() : nullptr),
      first_allocation_(offloader_ != nullptr ? offloader_->next_allocation() : 0),
      arguments_(microbatches.front().size()),
      random_(static_cast<std::int64_t>(microbatches.size()), slices.device()) {
  for (std::vector<c10::IValue>& inputs : microbatches) {
    Microbatch& microbatch = microbatches_.emplace_back(Microbatch{std::vector<Value>(slices.values())});
    microbatch.calls.resize(slices.slices().size() + 1);
    for (std::size_t i = 0; i < inputs.size(); ++i) hold(microbatch.values[i], std::move(inputs[i]));
  }
}

std::vector<c10::IValue> SlicedPass::forward() {
  for (const Slice& slice : slices_.slices()) {
    for (std::size_t i = 0; i < microbatches_.size(); ++i) {
      const MicrobatchRandom::Turn turn(random_, i);
      run(slice, microbatches_[i]);
    }
  }
  std::vector<c10::IValue> results;
  for (Microbatch& microbatch : microbatches_) {
    results.push_back(enter(slices_.result(), microbatch, microbatch.calls.back()));
    microbatch.values[slices_.result()].value = {};
  }
  return results;
}

void SlicedPass::run(const Slice& slice, Microbatch& microbatch) {
  Call& call = microbatch.calls[&slice - slices_.slices().data()];
  std::vector<c10::IValue> arguments = {slices_.model()._ivalue()};
  for (const ValueId input : slice.inputs) arguments.push_back(enter(input, microbatch, call));
  const auto unowned = std::shared_ptr<const CheckpointedModule>(std::shared_ptr<void>(), &slice.module);
  const c10::IValue result = std::make_shared<CheckpointedCall>(unowned)->first_run(std::move(arguments));
  const auto results = result.toTuple();
  for (std::size_t i = 0; i < slice.outputs.size(); ++i)
    hold(microbatch.values[slice.outputs[i]], results->elements()[i]);
  for (const ValueId input : slice.last_uses) microbatch.values[input].value = {};
}

/// Returns the value for a slice that reads it. The boundary replaces its history.
c10::IValue SlicedPass::enter(ValueId id, Microbatch& microbatch, Call& call) const {
  if (call.boundary == nullptr) call.boundary = Boundary::make();
  std::size_t next = 0;
  return with_tensors_replaced(microbatch.values[id].value, [&](const at::Tensor& tensor) {
    const std::size_t index = next++;
    if (is_waiting(tensor)) call.groups.push_back(tensor.storage());
    if (!tensor.defined() || !tensor.requires_grad()) return tensor;
    call.entered.push_back({id, index});
    return call.boundary->enter(tensor);
  });
}

void SlicedPass::hold(Value& value, c10::IValue made) const {
  with_tensors_replaced(made, [&](const at::Tensor& tensor) {
    const bool needs_gradient = tensor.defined() && tensor.requires_grad();
    value.edges.push_back(needs_gradient ? torch::autograd::impl::gradient_edge(tensor) : Edge());
    let_wait(tensor);
    return tensor;
  });
  value.gradients.resize(value.edges.size());
  value.value = std::move(made);
}

void SlicedPass::backward(const std::vector<at::Tensor>& losses) {
  OFFPROF_CHECK(losses.size() == microbatches_.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    Roots roots;
    roots.add(torch::autograd::impl::gradient_edge(losses[i]), at::ones_like(losses[i]));
    go_back(roots);
    take_gradients(std::exchange(microbatches_[i].calls.back(), {}), microbatches_[i]);
  }
  for (const Slice& slice : std::views::reverse(slices_.slices()))
    for (Microbatch& microbatch : microbatches_) go_back(slice, microbatch);
  for (Microbatch& microbatch : microbatches_) {
    Roots roots;  // for inputs of the model that need gradients
    for (Value& value : microbatch.values) add_roots(value, roots);
    go_back(roots);
    add_left_over(microbatch);
  }
}

/// Adds the gradients of shared parameters that got none from their first slice.
void SlicedPass::add_left_over(Microbatch& microbatch) const {
  for (const Slice& slice : slices_.slices())
    for (const Slice::SharedParameter& shared : slice.shared)
      if (auto later = microbatch.shared_gradients.extract(shared.weight.unsafeGetTensorImpl()))
        add_to_gradient(shared.weight, std::move(later.mapped()));
}

void SlicedPass::go_back(const Slice& slice, Microbatch& microbatch) {
  Call call = std::exchange(microbatch.calls[&slice - slices_.slices().data()], {});
  Roots roots;
  for (const ValueId output : slice.outputs) add_roots(microbatch.values[output], roots);
  if (roots.edges.empty()) return;
  // Gradients of its inputs from later slices come first, in the order of plain autograd.
  for (std::size_t i = 0; i < call.entered.size(); ++i) {
    const auto& [value, tensor] = call.entered[i];
    at::Tensor& so_far = microbatch.values[value].gradients[tensor];
    if (so_far.defined()) roots.add(call.boundary->edge(i), std::exchange(so_far, at::Tensor()));
  }
  SharedParameterScope shared(slice, microbatch, roots);
  go_back(roots);
  shared.done();
  take_gradients(std::move(call), microbatch);
}

void SlicedPass::Roots::add(Edge edge, at::Tensor gradient) {
  edges.push_back(std::move(edge));
  gradients.push_back(std::move(gradient));
}

void SlicedPass::add_roots(Value& value, Roots& roots) {
  for (std::size_t i = 0; i < value.edges.size(); ++i)
    if (value.gradients[i].defined()) roots.add(std::move(value.edges[i]), std::move(value.gradients[i]));
  value.edges.clear();
  value.gradients.clear();
}

void SlicedPass::go_back(const Roots& roots) {
  if (roots.edges.empty()) return;
  torch::autograd::Engine::get_default_engine().execute(roots.edges, roots.gradients, /*keep_graph=*/false,
                                                        /*create_graph=*/false, /*accumulate_grad=*/true);
}

void SlicedPass::take_gradients(Call call, Microbatch& microbatch) const {
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
void SlicedPass::let_wait(const at::Tensor& value) const {
  if (offloader_ != nullptr) offloader_->adopt_for_step(value, first_allocation_);
}

bool SlicedPass::is_waiting(const at::Tensor& value) const {
  return offloader_ != nullptr && value.defined() && value.has_storage() &&
         offloader_->is_parameter_group(value.storage());
}

}  // namespace offprof
