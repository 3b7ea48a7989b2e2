#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/device_allocator.h"

namespace offprof {

/// Tensors of a program that outlive its steps.
struct ProgramTensors {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  std::optional<std::vector<at::Tensor>> optimizer_states{};  ///< nullopt: no optimizer is known
  std::vector<at::Tensor> gradients{};                        ///< that are there when the step begins
};

/// Returns those of the tensors that are in the allocator's memory, as residents of a step.
Residents residents_of(const ProgramTensors& tensors, const DeviceAllocator& allocator);

/// Returns the bytes of the storages of those tensors that are on `device`, each storage once.
Bytes bytes_on(c10::Device device, const std::vector<at::Tensor>& tensors);

/// Returns the bytes of the tensors' storages on `device` that the allocator does not know, since they are
/// older than it.
Bytes bytes_before(const ProgramTensors& tensors, const DeviceAllocator& allocator, c10::Device device);

}  // namespace offprof
