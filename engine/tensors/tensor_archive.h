#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensors/files/readable_file.h"
#include "traces/base/units.h"

namespace offprof {

/// A `.pt` file: a zip archive made by torch.save of a dictionary of tensors, or by LibTorch's pickle_save.
/// Its pickle is parsed and not run (see read_checkpoint_pickle); the numbers stay on the disk.
class TensorArchive {
 public:
  /// A tensor: a view of bytes in the file, all of which exist.
  struct Entry {
    at::ScalarType dtype = at::kFloat;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< in numbers, never negative
    Bytes offset = 0;                   ///< of its first number in the file
    Bytes span = 0;                     ///< from its first to its last number: the bytes that a load reads
  };

  /// Throws Error (input) if the file is not a PyTorch archive, is damaged, or is a TorchScript module; if it
  /// has contents other than tensors, dictionaries and numbers; if a tensor is not a view of its storage; or
  /// if a storage is missing, too short or compressed.
  explicit TensorArchive(std::shared_ptr<const ReadableFile> file);

  /// Returns the tensors by name: the keys of dictionaries, joined by dots.
  const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
  /// Reads a tensor, with its strides, to the host. Tensors that share a storage in the file do not share
  /// memory afterwards.
  at::Tensor read(const Entry& entry) const;

 private:
  std::shared_ptr<const ReadableFile> file_;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace offprof
