#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensors/files/readable_file.h"
#include "traces/base/units.h"

namespace offprof {

/// A tensor of a checkpoint, on the disk.
struct CheckpointTensor {
  /// PyTorch's name without `torch.`, `float32`; the file's own name if PyTorch lacks the dtype.
  std::string dtype;
  std::vector<std::int64_t> sizes;    ///< as in the file: in safetensors 4-bit numbers count one by one
  std::vector<std::int64_t> strides;  ///< in elements, never negative; empty: row-major
  Bytes bytes = 0;                    ///< from its first to its last element: the bytes that a load reads
  Bytes offset = 0;                   ///< of its first element in the file
  std::shared_ptr<const ReadableFile> file{};
};

/// A checkpoint on the disk. Only the names and places of its tensors are in memory.
class Checkpoint {
 public:
  using Open = std::function<std::shared_ptr<const ReadableFile>(const std::string& path)>;
  using Tensors = std::map<std::string, CheckpointTensor, std::less<>>;

  /// Opens one of
  /// - a `.safetensors` file (see SafetensorsFile),
  /// - a `model.safetensors.index.json`, which maps each tensor to a file in the same folder,
  /// - a folder with an index of that name, or with `.safetensors` files whose tensors have different names,
  /// - a `.pt` file, made by torch.save of a dictionary (see TensorArchive).
  ///
  /// Throws Error (input) for anything else, for files that their readers reject, and for an index that names
  /// a tensor that its file lacks, or a file in another folder. Opens files by `open`.
  explicit Checkpoint(const std::string& path, const Open& open = open_readable);

  const std::string& path() const { return path_; }
  /// Returns the tensors by name.
  const Tensors& tensors() const { return tensors_; }
  /// Returns the tensor with that name. Throws Error (input), with the nearest name, if there is none.
  const CheckpointTensor& at(std::string_view name) const;
  /// Returns the size of all tensors.
  Bytes bytes() const;

 private:
  void add_folder(const Open& open);
  void add_index(const std::string& path, const Open& open);
  void add_file(const std::string& path, const Open& open);
  void add(const std::string& name, CheckpointTensor&& tensor);

  std::string path_;
  Tensors tensors_;
};

/// Returns true for a path that can only be a checkpoint: a folder, a `.safetensors` file or an index.
bool is_checkpoint_path(const std::string& path);

}  // namespace offprof
