#include "profiler/steps/program_tensors.h"

#include <unordered_set>

#include "profiler/steps/gathered_storages.h"

namespace offprof {

Residents residents_of(const ProgramTensors& tensors, const DeviceAllocator& allocator) {
  Residents residents;
  residents.is_parameter_group = is_gathered_storage;
  residents.gathers_parameters = has_gathered_storages;
  for (const at::Tensor& parameter : tensors.parameters)
    residents.add(parameter, StorageRole::kParameter, allocator);
  for (const at::Tensor& buffer : tensors.buffers) residents.add(buffer, StorageRole::kBuffer, allocator);
  return residents;
}

Bytes bytes_on(c10::Device device, const std::vector<at::Tensor>& tensors) {
  Bytes bytes = 0;
  std::unordered_set<const c10::StorageImpl*> seen;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined() && tensor.has_storage() && tensor.device() == device &&
        seen.insert(tensor.storage().unsafeGetStorageImpl()).second)
      bytes += static_cast<Bytes>(tensor.storage().nbytes());
  return bytes;
}

Bytes bytes_before(const ProgramTensors& tensors, const DeviceAllocator& allocator, c10::Device device) {
  Bytes bytes = 0;
  std::unordered_set<const c10::StorageImpl*> seen;
  const auto add = [&](const at::Tensor& tensor) {
    if (!tensor.has_storage() || tensor.device() != device) return;
    const c10::Storage& storage = tensor.storage();
    if (allocator.allocation_of(storage) || !seen.insert(storage.unsafeGetStorageImpl()).second) return;
    bytes += static_cast<Bytes>(storage.nbytes());
  };
  for (const at::Tensor& parameter : tensors.parameters) add(parameter);
  for (const at::Tensor& buffer : tensors.buffers) add(buffer);
  return bytes;
}

}  // namespace offprof
