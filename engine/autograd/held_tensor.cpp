#include "engine/autograd/held_tensor.h"

#include <ATen/ExpandUtils.h>
#include <c10/util/Exception.h>

#include <utility>
#include <vector>

#include "engine/recompute/recompute.h"

namespace offprof {
namespace {

Shell shallow_copy(const c10::TensorImpl& impl) {
  return impl.shallow_copy_and_detach(impl.version_counter(), /*allow_tensor_metadata_change=*/true);
}

}  // namespace

Shell shell_of(const at::Tensor& value) {
  return shallow_copy(*value.unsafeGetTensorImpl());
}

HeldTensor::HeldTensor(const at::Tensor& value, bool is_variable)
    : shell(is_variable ? Shell(value.getIntrusivePtr()) : shell_of(value)),
      version(version_of(value)),
      counter(value.unsafeGetTensorImpl()->version_counter()) {}

void check_unmodified(const HeldTensor& held) {
  const c10::VariableVersion& counter = held.shell->version_counter();
  if (!counter.enabled()) return;
  TORCH_CHECK(
      counter.current_version() == held.version,
      "one of the variables needed for gradient computation has been modified by an inplace operation: [",
      c10::toString(c10::typeMetaToScalarType(held.shell->dtype())), " ", held.shell->sizes(),
      "] is at version ", counter.current_version(), "; expected version ", held.version, " instead.");
}

at::Tensor with_storage(const Shell& shell, const c10::Storage& storage, bool is_packed_densely) {
  Shell tensor = shallow_copy(*shell);
  tensor->set_storage_keep_dtype(storage);
  if (is_packed_densely) {
    const at::Tensor original(shell);
    const std::vector<std::int64_t> strides =
        is_dense(original) ? original.strides().vec()
                           : at::infer_dense_strides(original.sizes(), original.strides());
    tensor->set_sizes_and_strides(original.sizes(), strides, /*storage_offset=*/0);
  }
  return at::Tensor(std::move(tensor));
}

}  // namespace offprof
