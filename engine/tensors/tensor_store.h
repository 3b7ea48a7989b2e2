#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <string_view>

#include "engine/tensors/files/checkpoint.h"
#include "traces/base/units.h"

namespace offprof {

/// A checkpoint on the disk, whose tensors are loaded one by one. Several threads may load tensors at once.
class TensorStore {
 public:
  /// Opens a checkpoint: see Checkpoint, also for errors.
  explicit TensorStore(const std::string& path, const Checkpoint::Open& open = open_readable)
      : checkpoint_(path, open) {}

  const std::string& path() const { return checkpoint_.path(); }
  /// Returns the descriptions of the tensors, by name.
  const Checkpoint::Tensors& tensors() const { return checkpoint_.tensors(); }
  /// Returns the size of all tensors.
  Bytes bytes() const { return checkpoint_.bytes(); }
  /// Reads one tensor. Throws Error (input) if there is none with that name, if the disk fails, or if
  /// LibTorch lacks the dtype; LibTorch's own exceptions are passed on.
  at::Tensor get(std::string_view name, at::Device device = at::kCPU) const;

 private:
  Checkpoint checkpoint_;
};

}  // namespace offprof
