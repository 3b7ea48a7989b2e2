#include "engine/autograd/wrapped_tensor.h"

#include <ATen/record_function.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/TensorImpl.h>

#include <utility>

namespace offprof {
namespace {

using Unwrapper = std::function<std::optional<WrappedTensor>(const at::Tensor&)>;

Unwrapper& unwrapper() {
  static auto* function = new Unwrapper;  // never destroyed: it may hold objects of Python
  return *function;
}

}  // namespace

void set_unwrapper(Unwrapper function) {
  unwrapper() = std::move(function);
}

std::optional<WrappedTensor> unwrap(const at::Tensor& tensor) {
  if (!unwrapper() || !tensor.defined() || !tensor.key_set().has(c10::DispatchKey::Python))
    return std::nullopt;
  const at::DisableRecordFunctionGuard unheard;  // the program has no such operators
  std::optional<WrappedTensor> wrapped = unwrapper()(tensor);
  if (!wrapped) return std::nullopt;
  wrapped->wrap = [wrap = std::move(wrapped->wrap)](const at::Tensor& inner) {
    const at::DisableRecordFunctionGuard unheard_later;
    return wrap(inner);
  };
  wrapped->plain = at::Tensor(wrapped->inner.unsafeGetTensorImpl()->shallow_copy_and_detach(
      tensor.unsafeGetTensorImpl()->version_counter(), /*allow_tensor_metadata_change=*/true));
  return wrapped;
}

}  // namespace offprof
