#include "engine/remake.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace offprof {
namespace {

/// Without a copy, nor memory of its own.
at::Tensor view_storage(const c10::Storage& storage, const StorageView& view) {
  at::Tensor tensor = at::empty({0}, at::TensorOptions(storage.device()).dtype(view.type));
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(storage);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(view.sizes, view.strides, view.offset);
  return tensor;
}

}  // namespace

StorageView view_of(const at::Tensor& value) {
  return {value.scalar_type(), value.sizes().vec(), value.strides().vec(), value.storage_offset()};
}

std::uint32_t version_of(const at::Tensor& value) {
  return value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version());
}

at::Tensor remake(const ExecutableRecipe& recipe, const std::function<c10::Storage(SavedId)>& storage_of) {
  const at::AutoDispatchBelowAutograd below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  torch::jit::Stack stack;
  for (const RecipeArgument& argument : recipe.arguments)
    stack.push_back(argument.source < 0
                        ? argument.value
                        : c10::IValue(view_storage(storage_of(argument.source), argument.view)));
  recipe.op.callBoxed(stack);
  at::Tensor result = stack.at(recipe.output).toTensor();
  stack.clear();
  TORCH_CHECK(result.has_storage() && view_of(result) == recipe.view, recipe.op.schema().name(),
              " made another tensor in backward than in forward: the step is not the one that was recorded");
  return result;
}

}  // namespace offprof
