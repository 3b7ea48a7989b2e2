#include "engine/autograd/residents.h"

namespace offprof {

void Residents::add(const at::Tensor& tensor, StorageRole role, const DeviceAllocator& allocator) {
  if (role == StorageRole::kParameter) parameters.insert(tensor.unsafeGetTensorImpl());
  if (!tensor.has_storage()) return;
  if (const auto allocation = allocator.allocation_of(tensor.storage())) roles.emplace(*allocation, role);
}

}  // namespace offprof
