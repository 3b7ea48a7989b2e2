#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/models/model.h"
#include "engine/tensors/files/readable_file.h"
#include "engine/tensors/tensor_store.h"

namespace offprof {

/// A checkpoint that has a value for each parameter of a model. The values stay on the disk until they are
/// read, one at a time. A buffer that the checkpoint lacks keeps its value: a `state_dict()` has no
/// non-persistent buffers, and TorchScript does not record which buffers are persistent.
class ModelCheckpoint {
 public:
  /// Opens the checkpoint and compares it with the model; both stay as they are. Names that share memory in
  /// the model need only one value. Throws Error (input), with the first few names and what to do, if a
  /// parameter, or a buffer without memory, is missing, if a tensor is not one of the model's, if a shape or
  /// dtype differs, or if names that share memory in the model have different values; and with the errors of
  /// Checkpoint.
  ModelCheckpoint(const std::string& path, const Model& model);

  /// Returns a note that names the buffers that keep their values; empty: there are none.
  std::string note() const;
  /// Reads the value of a parameter or buffer of the model to the host; returns a buffer that keeps its value
  /// itself. Throws Error (input) if the disk fails.
  at::Tensor value_of(const at::Tensor& tensor) const;
  /// Gives a meta parameter on the host memory for its value, which is not read yet. Does nothing for other
  /// tensors.
  static void make_room(at::Tensor tensor);
  /// Reads the value into the tensor itself, which is on the host; see make_room. Does nothing for a buffer
  /// that keeps its value.
  void read_into(at::Tensor tensor) const;
  /// Returns the bytes of the file that are the memory of the tensor's storage; nullopt if the value is
  /// stored in another layout, or is only part of a storage.
  std::optional<FileRange> range_of(const at::Tensor& tensor) const;

 private:
  struct NamedTensor {
    std::string name;
    at::Tensor tensor;
    bool is_buffer = false;
  };
  using NamedTensors = std::vector<NamedTensor>;
  /// Names, and for a difference the reason.
  struct Mismatch {
    std::vector<std::string> missing, unknown, different;
    bool empty() const;
  };

  static NamedTensors tensors_of(const Model& model);
  Mismatch match(const NamedTensors& tensors);
  [[noreturn]] void refuse(const Mismatch& mismatch, const Model& model) const;
  bool keeps_value(const at::Tensor& tensor) const { return kept_.contains(tensor.unsafeGetTensorImpl()); }
  const std::string& name_of(const at::Tensor& tensor) const;
  const CheckpointTensor& stored(const at::Tensor& tensor) const;

  TensorStore store_;
  std::map<const c10::TensorImpl*, std::string> name_of_;  ///< in the checkpoint
  std::map<const c10::TensorImpl*, std::string> kept_;  ///< buffers that keep their values, with their names
};

}  // namespace offprof
