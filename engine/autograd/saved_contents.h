#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/compute_stream.h"
#include "engine/devices/device_allocator.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Describes the tensors that autograd saves in a step for the scheduler, in the order in which it saves
/// them, and identifies their contents.
class SavedContents {
 public:
  /// `allocator` must outlive this object. The storages that exist already are residents.
  SavedContents(const DeviceAllocator& allocator, std::shared_ptr<const Residents> residents);

  /// `in_backward`: an autograd node saves the tensor.
  PackRequest describe(const at::Tensor& value, const at::Tensor& saved, bool in_backward);
  /// Returns the version of a movable tensor's content for a copy that a transform encodes from the tensor's
  /// type. It differs from all versions for other types: such a copy cannot serve a tensor of another type.
  std::uint32_t encoded_version(const at::Tensor& value, AllocationId allocation);

  /// Returns true if the storage is an activation or an input that was made in the step.
  bool is_made_in_step(AllocationId allocation) const { return allocation >= first_allocation_; }

  /// Notes that the step's program passes the tensors to its model from outside: they are inputs from now on.
  void add_inputs(std::span<const at::Tensor> tensors);
  /// Notes that the model has returned the tensors: they are no inputs, even if they are passed to it later.
  void add_outputs(std::span<const at::Tensor> tensors);

  /// Notes that backward has unpacked the tensor from `storage`: the one that it was saved with, or another
  /// to which it was reloaded.
  void add_unpacked(SavedId tensor, const c10::Storage& storage, bool is_reloaded);
  /// Notes that backward has ended. Parameters and the like may be saved again in the next backward as if
  /// they had never been unpacked.
  void backward_end();

 private:
  /// Content of a storage when a tensor was saved. The version alone does not identify it: pieces of one
  /// storage may each have a counter (unsafe_chunk, which LSTM cells use).
  struct Content {
    c10::VariableVersion counter;  ///< held so that its address stays its identity
    std::uint32_t version = 0;
    at::ScalarType encoded_as = at::ScalarType::Undefined;  ///< if encoded, the type of the numbers
  };

  std::uint32_t version(const at::Tensor& value, AllocationId allocation, at::ScalarType encoded_as);
  bool was_unpacked(AllocationId allocation);
  StorageRole role_of(AllocationId allocation) const;
  std::optional<AllocationId> allocation_of(const at::Tensor& value) const;

  const DeviceAllocator& allocator_;
  std::shared_ptr<const Residents> residents_;
  AllocationId first_allocation_;  ///< older storages are residents
  /// Contents of movable storages, in the order of saving.
  std::unordered_map<AllocationId, std::vector<Content>> contents_;
  std::unordered_set<AllocationId> inputs_;
  std::unordered_set<AllocationId> outputs_;
  std::vector<AllocationId> saved_in_;  ///< by saved tensor; 0: no allocation
  std::vector<AllocationId> unpacked_;  ///< not in the set yet: most steps never look one up
  std::unordered_set<AllocationId> unpacked_set_;
};

}  // namespace offprof
