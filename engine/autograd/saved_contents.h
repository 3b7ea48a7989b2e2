#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/device_allocator.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Describes the tensors that autograd saves in a step for the scheduler, and identifies their contents.
class SavedContents {
 public:
  /// `allocator` must outlive this object. The storages that exist already are residents.
  SavedContents(const DeviceAllocator& allocator, std::shared_ptr<const Residents> residents);

  PackRequest describe(const at::Tensor& value);
  /// Returns the version of a movable tensor's content for a copy that a transform encodes from the tensor's
  /// type. It differs from all versions for other types: such a copy cannot serve a tensor of another type.
  std::uint32_t encoded_version(const at::Tensor& value, AllocationId allocation);

 private:
  /// Content of a storage when a tensor was saved. The version alone does not identify it: pieces of one
  /// storage may each have a counter (unsafe_chunk, which LSTM cells use).
  struct Content {
    c10::VariableVersion counter;  ///< held so that its address stays its identity
    std::uint32_t version = 0;
    at::ScalarType encoded_as = at::ScalarType::Undefined;  ///< if encoded, the type of the numbers
  };

  std::uint32_t version(const at::Tensor& value, AllocationId allocation, at::ScalarType encoded_as);
  StorageRole role_of(AllocationId allocation) const;

  const DeviceAllocator& allocator_;
  std::shared_ptr<const Residents> residents_;
  AllocationId first_allocation_;  ///< older storages are residents
  /// Contents of movable storages, in the order of saving.
  std::unordered_map<AllocationId, std::vector<Content>> contents_;
};

}  // namespace offprof
