#include "engine/recompute/recompute.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>

namespace offprof {
namespace {

c10::IValue value_of(const RecomputeArgument& argument, const RecomputeInputs& inputs,
                     const std::vector<c10::Storage>& made) {
  if (argument.source >= 0) return view_storage(inputs.storage_of(argument.source), argument.view);
  if (argument.step >= 0) return view_storage(made.at(argument.step), argument.view);
  return argument.value;
}

c10::Storage run_step(const RecomputeStep& step, const RecomputeInputs& inputs,
                      const std::vector<c10::Storage>& made) {
  torch::jit::Stack stack;
  for (const RecomputeArgument& argument : step.arguments) stack.push_back(value_of(argument, inputs, made));
  {
    std::optional<DrawScope> random;
    if (step.draw) random.emplace(inputs.state_before(*step.draw));
    step.op.callBoxed(stack);
  }
  const at::Tensor result = stack.at(step.output).toTensor();
  TORCH_CHECK(
      result.has_storage() && view_of(result) == step.view, step.op.schema().name(),
      " produced a different tensor in backward than in forward: this step differs from the recorded step");
  return result.storage();
}

/// Frees, after step `done`, the results that no later step reads.
void let_go_of_used(const ExecutableRecomputation& recomputation, std::size_t done,
                    std::vector<c10::Storage>& made) {
  const auto takes = [](const RecomputeStep& step, std::size_t number) {
    return std::ranges::any_of(step.arguments, [number](const RecomputeArgument& argument) {
      return argument.step >= 0 && static_cast<std::size_t>(argument.step) == number;
    });
  };
  for (std::size_t i = 0; i < done; ++i) {
    const bool is_needed =
        std::any_of(recomputation.steps.begin() + static_cast<std::ptrdiff_t>(done) + 1,
                    recomputation.steps.end(), [&](const RecomputeStep& step) { return takes(step, i); });
    if (!is_needed) made[i] = c10::Storage();
  }
}

}  // namespace

StorageView view_of(const at::Tensor& value) {
  return {value.scalar_type(), value.sizes().vec(), value.strides().vec(), value.storage_offset()};
}

at::Tensor view_storage(const c10::Storage& storage, const StorageView& view) {
  at::Tensor tensor = at::empty({0}, at::TensorOptions(storage.device()).dtype(view.type));
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes, view.strides, view.offset);
  return tensor;
}

bool is_same_counter(const c10::VariableVersion& a, const c10::VariableVersion& b) {
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  return std::memcmp(&a, &b, sizeof(void*)) == 0;
}

std::uint32_t version_of(const at::Tensor& value) {
  return value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version());
}

std::string ExecutableRecomputation::name() const {
  std::string name;
  for (const RecomputeStep& step : steps) name += (name.empty() ? "" : ", ") + step.op.schema().name();
  return name;
}

at::Tensor recompute(const ExecutableRecomputation& recomputation, const RecomputeInputs& inputs) {
  const at::AutoDispatchBelowAutograd below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::vector<c10::Storage> made(recomputation.steps.size());
  for (std::size_t i = 0; i < recomputation.steps.size(); ++i) {
    made[i] = run_step(recomputation.steps[i], inputs, made);
    let_go_of_used(recomputation, i, made);
  }
  return view_storage(made.back(), recomputation.steps.back().view);
}

}  // namespace offprof
