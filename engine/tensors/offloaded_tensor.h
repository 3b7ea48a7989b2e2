#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensors/files/offload_folder.h"
#include "engine/tensors/value_file.h"
#include "traces/base/units.h"

namespace offprof {

/// A tensor whose value is on the disk. Each access reads it, and the memory is freed with the last tensor
/// that shares it: nothing is cached. The file outlives the object and the process.
///
/// Values are preserved bit by bit, for any strided layout and dtype. Strides are preserved if no two numbers
/// share memory and no memory is unused; otherwise they become row-major. Quantised values (affine, per
/// tensor or channel) stay quantised on the disk. Gradients and their history are not saved.
///
/// The file is replaced atomically, at whatever instant the process or the machine stops. Several threads may
/// read at once; updates of the value or of the target need exclusive access.
///
/// Failures of the disk and invalid names are an Error (input); LibTorch's own exceptions (no memory, no such
/// device) are passed on.
class OffloadedTensor {
 public:
  /// Writes the value, replacing an older one with that name in the folder; the target is the tensor's
  /// device. Throws Error (input), with the reason, for a name that another OffloadedTensor of the folder has
  /// or that no file can have, and for a tensor that is sparse, nested, quantised in another way, or without
  /// numbers.
  OffloadedTensor(const at::Tensor& tensor, std::string name, std::shared_ptr<OffloadFolder> folder);
  /// Opens the value with that name that the folder has from an earlier process. Throws Error (input) if
  /// there is none.
  static OffloadedTensor open(std::string name, std::shared_ptr<OffloadFolder> folder,
                              at::Device target = at::kCPU);

  const std::string& name() const { return claim_.name(); }
  std::filesystem::path path() const { return claim_.folder().file_of(name()); }
  at::ScalarType dtype() const { return info_.dtype; }
  at::IntArrayRef sizes() const { return info_.sizes; }
  std::int64_t numel() const;
  /// Returns the size of the numbers, which an access allocates.
  Bytes bytes() const { return info_.bytes; }
  /// Returns the device to which accesses load the value.
  at::Device device() const { return target_; }

  /// Reads the value to the target device.
  at::Tensor load() const;
  /// Calls `work` with the value, and frees the value afterwards.
  template <typename Work>
  auto with(const Work& work) const {
    return work(load());
  }

  /// Sets the target device of later accesses; nothing moves now. Throws Error (input) for the meta device,
  /// which has no numbers.
  OffloadedTensor& to(at::Device target);
  /// Replaces the value. In strict mode, throws Error (input) with both shapes or dtypes if the new one
  /// differs; otherwise the tensor takes the new shape and dtype. On any error the old value is kept.
  void update_values(const at::Tensor& values, bool strict_shape = true, bool strict_dtype = true);

  /// Removes the file. The object must not be used afterwards.
  void discard() &&;

 private:
  OffloadedTensor(OffloadFolder::Claim claim, at::Device target);
  void write(const at::Tensor& tensor);

  OffloadFolder::Claim claim_;
  at::Device target_;
  ValueInfo info_;
};

}  // namespace offprof
