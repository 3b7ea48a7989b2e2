#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensors/files/readable_file.h"
#include "traces/units.h"

namespace offprof {

/// A `.pt` file: a zip archive that torch.save made of a dictionary of tensors, or LibTorch's pickle_save.
/// Its pickle is looked at and not run (see read_checkpoint_pickle); the numbers stay on the disk.
class TensorArchive {
 public:
  /// A tensor: a view of bytes in the file, all of which are there.
  struct Entry {
    at::ScalarType dtype = at::kFloat;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< in numbers, none negative
    Bytes offset = 0;                   ///< of its first number in the file
    Bytes span = 0;                     ///< from its first number to its last, which is what a load reads
  };

  /// Throws Error (input): no archive of PyTorch's or a damaged one; a TorchScript module; other contents
  /// than tensors, dictionaries and numbers; a tensor that is no view of its storage, or a storage that is
  /// not there, too short, or compressed.
  explicit TensorArchive(std::shared_ptr<const ReadableFile> file);

  /// By name: keys of dictionaries, joined by dots.
  const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }
  /// Reads one of them, with its strides, to the host. Tensors that share a storage in the file do not
  /// afterwards.
  at::Tensor read(const Entry& entry) const;

 private:
  std::shared_ptr<const ReadableFile> file_;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace offprof
