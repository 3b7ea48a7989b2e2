#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/tensors/files/readable_file.h"
#include "traces/base/units.h"

namespace offprof {

/// A `.pt` file: a zip archive made by torch.save of a dictionary of tensors, by LibTorch's pickle_save, or
/// by the save of a TorchScript module. Its pickle is parsed and not run (see read_checkpoint_pickle); the
/// numbers stay on the disk.
class TensorArchive {
 public:
  /// A tensor: a view of bytes in the file, all of which exist.
  struct Entry {
    std::string dtype;  ///< PyTorch's name without `torch.`: `float32`
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;  ///< in numbers, never negative
    Bytes offset = 0;                   ///< of its first number in the file
    Bytes span = 0;                     ///< from its first to its last number: the bytes that a load reads
  };

  /// Contents that a caller accepts.
  enum class Accepts { kDictionaries, kModulesToo };

  /// Throws Error (input) if the file is not a PyTorch archive, or is damaged; if it is a TorchScript module
  /// and those are not accepted; if a dictionary has contents other than tensors, dictionaries and numbers;
  /// if a tensor is not a view of its storage; or if a storage is missing, too short or compressed.
  explicit TensorArchive(std::shared_ptr<const ReadableFile> file, Accepts accepts = Accepts::kDictionaries);

  /// True for a TorchScript module: its tensors are parameters, buffers and other attributes.
  bool is_module() const { return is_module_; }
  /// Returns the tensors by name: the keys of dictionaries, or the path in the module, joined by dots.
  const std::map<std::string, Entry, std::less<>>& tensors() const { return tensors_; }

 private:
  bool is_module_ = false;
  std::map<std::string, Entry, std::less<>> tensors_;
};

}  // namespace offprof
