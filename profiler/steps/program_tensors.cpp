#include "profiler/steps/program_tensors.h"

#include <unordered_set>

#include "profiler/steps/gathered_storages.h"

namespace offprof {
namespace {

/// Sum of the storages on a device, each once.
class StorageBytes {
 public:
  explicit StorageBytes(c10::Device device) : device_(device) {}

  void add(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.has_storage() || tensor.device() != device_) return;
    const c10::Storage& storage = tensor.storage();
    if (seen_.insert(storage.unsafeGetStorageImpl()).second) sum_ += static_cast<Bytes>(storage.nbytes());
  }
  Bytes sum() const { return sum_; }

 private:
  c10::Device device_;
  std::unordered_set<const c10::StorageImpl*> seen_;
  Bytes sum_ = 0;
};

}  // namespace

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
  StorageBytes bytes(device);
  for (const at::Tensor& tensor : tensors) bytes.add(tensor);
  return bytes.sum();
}

Bytes bytes_before(const ProgramTensors& tensors, const DeviceAllocator& allocator, c10::Device device) {
  StorageBytes bytes(device);
  for (const auto* const list : {&tensors.parameters, &tensors.buffers})
    for (const at::Tensor& tensor : *list)
      if (tensor.has_storage() && !allocator.allocation_of(tensor.storage())) bytes.add(tensor);
  return bytes.sum();
}

}  // namespace offprof
