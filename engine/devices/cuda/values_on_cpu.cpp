#include "engine/devices/cuda/values_on_cpu.h"

#include <ATen/Functions.h>
#include <c10/core/CPUAllocator.h>

#include <cstdint>
#include <cstring>

namespace offprof {

bool is_plain(const at::Tensor& tensor) {
  constexpr auto kWrappers = c10::python_ks | c10::functorch_transforms_ks | c10::functorch_batched_ks |
                             c10::DispatchKeySet({c10::DispatchKey::Functionalize, c10::DispatchKey::Negative,
                                                  c10::DispatchKey::Conjugate, c10::DispatchKey::ZeroTensor});
  return tensor.layout() == at::kStrided && tensor.has_storage() && !tensor.is_quantized() &&
         !tensor.key_set().has_any(kWrappers);
}

c10::Storage new_storage(std::size_t bytes) {
  return {c10::Storage::use_byte_size_t(), c10::SymInt(static_cast<std::int64_t>(bytes)),
          c10::GetCPUAllocator(), false};
}

c10::Storage copy_of(const c10::Storage& storage) {
  c10::Storage copy = new_storage(storage.nbytes());
  std::memcpy(copy.mutable_data(), storage.data(), storage.nbytes());
  return copy;
}

at::Tensor view_like(const c10::Storage& storage, const at::Tensor& tensor) {
  std::int64_t last = tensor.storage_offset();
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  if ((last + 1) * static_cast<std::int64_t>(tensor.element_size()) >
      static_cast<std::int64_t>(storage.nbytes()))
    return {};
  return at::empty({0}, at::TensorOptions(tensor.scalar_type()))
      .set_(storage, tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

}  // namespace offprof
