#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "engine/devices/device_allocator.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Tensors that stay on the device for longer than a step, and so are never moved. They are known by storage,
/// so views and transposes are recognised.
struct Residents {
  std::unordered_map<AllocationId, StorageRole> roles;    ///< of parameters, buffers, inputs
  std::unordered_set<const c10::TensorImpl*> parameters;  ///< the parameters themselves
  /// Returns true for a storage that is on the device only around its uses (see ParameterOffloader); empty:
  /// none is.
  std::function<bool(const c10::Storage&)> is_parameter_group{};
  /// Returns true if the program gathers parameters on streams of its own (FSDP2); empty: it does not.
  std::function<bool()> gathers_parameters{};

  /// Adds a tensor with its role; a parameter also to `parameters`. Its storage has the role only if
  /// `allocator` has allocated it.
  void add(const at::Tensor& tensor, StorageRole role, const DeviceAllocator& allocator);
};

}  // namespace offprof
