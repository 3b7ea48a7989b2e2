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
#include "traces/units.h"

namespace offprof {

/// A tensor whose value lies on the disk. Each access reads it, and its memory goes with the last tensor that
/// shares it: nothing is kept. The file outlives the object, and the process.
///
/// Values come back bit by bit, of any strided layout and dtype; the same strides where no two numbers share
/// memory and none is unused, row-major ones otherwise. Quantised values (affine, per tensor or channel) stay
/// so on the disk. Gradients and their history stay behind.
///
/// The file is replaced whole or not at all, at whatever instant the process or the machine stops. Several
/// threads may read at once; whoever updates a value, or moves its target, is alone.
///
/// What the disk or a name refuses is an Error (input); LibTorch's own exceptions (no memory, no such device)
/// come as they are.
class OffloadedTensor {
 public:
  /// Writes the value, in the place of an older one of that name in the folder; its target is the tensor's
  /// device. Throws Error (input): for a name that another OffloadedTensor of the folder has or no file can
  /// have; for a tensor that is sparse or nested, has no numbers, or is quantised otherwise, with the reason.
  OffloadedTensor(const at::Tensor& tensor, std::string name, std::shared_ptr<OffloadFolder> folder);
  /// The value of that name that the folder has already, from an earlier process. Throws Error (input) where
  /// there is none.
  static OffloadedTensor open(std::string name, std::shared_ptr<OffloadFolder> folder,
                              at::Device target = at::kCPU);

  const std::string& name() const { return claim_.name(); }
  std::filesystem::path path() const { return claim_.folder().file_of(name()); }
  at::ScalarType dtype() const { return info_.dtype; }
  at::IntArrayRef sizes() const { return info_.sizes; }
  std::int64_t numel() const;
  /// Of the numbers, which is what an access takes.
  Bytes bytes() const { return info_.bytes; }
  /// Where accesses bring the value.
  at::Device device() const { return target_; }

  /// Reads the value, to the target device.
  at::Tensor load() const;
  /// Calls `work` with the value, and lets go of it.
  template <typename Work>
  auto with(const Work& work) const {
    return work(load());
  }

  /// From here on accesses bring the value to that device; nothing moves now. Throws Error (input) for meta,
  /// where there are no numbers.
  OffloadedTensor& to(at::Device target);
  /// Replaces the value. Where it is strict, and the shape or the dtype is not that of the old one, throws
  /// Error (input) that says both; otherwise the tensor has those of the new one from then on. On any error
  /// the old value stays.
  void update_values(const at::Tensor& values, bool strict_shape = true, bool strict_dtype = true);

  /// Removes the file. The object is of no use afterwards.
  void discard() &&;

 private:
  OffloadedTensor(OffloadFolder::Claim claim, at::Device target);
  void write(const at::Tensor& tensor);

  OffloadFolder::Claim claim_;
  at::Device target_;
  ValueInfo info_;
};

}  // namespace offprof
