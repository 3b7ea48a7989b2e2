#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

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

/// Description of a checkpoint's tensor that has not been loaded.
struct TensorInfo {
  /// Name by dtype_name(), `float32`; the file's own name if LibTorch lacks the dtype.
  std::string dtype;
  std::vector<std::int64_t> sizes;
  Bytes bytes = 0;   ///< bytes that a load reads
  std::string file;  ///< path of its file
};

/// A file of tensors.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::map<std::string, TensorInfo, std::less<>>& tensors() const = 0;
  /// Reads a tensor of the file to the host.
  virtual at::Tensor read(std::string_view name) const = 0;
};

/// A checkpoint on the disk. Only the names and places of its tensors are in memory. Several threads may load
/// tensors at once.
class TensorStore {
 public:
  using Open = std::function<std::shared_ptr<const ReadableFile>(const std::string& path)>;

  /// Opens one of
  /// - a `.safetensors` file (see SafetensorsFile),
  /// - a `model.safetensors.index.json`, which maps each tensor to a file in the same folder,
  /// - a folder with an index of that name, or with `.safetensors` files whose tensors have different names,
  /// - a `.pt` file, made by torch.save of a dictionary (see TensorArchive).
  ///
  /// Throws Error (input) for anything else, for files that their readers reject, and for an index that names
  /// a tensor that its file lacks, or a file in another folder. Opens files by `open`.
  explicit TensorStore(const std::string& path, const Open& open = open_readable);

  /// Returns the tensors by name.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }
  /// Returns the size of all tensors.
  Bytes bytes() const;
  /// Reads one tensor. Throws Error (input) if there is none with that name, if the disk fails, or if
  /// LibTorch lacks the dtype; LibTorch's own exceptions are passed on.
  at::Tensor get(std::string_view name, at::Device device = at::kCPU) const;

 private:
  void add_folder(const std::string& path, const Open& open);
  void add_index(const std::string& path, const Open& open);
  void add_file(std::shared_ptr<const TensorFile> file);
  void add(const std::string& name, const std::shared_ptr<const TensorFile>& file);

  std::string path_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  std::map<std::string, std::shared_ptr<const TensorFile>, std::less<>> files_;  ///< by tensor
};

}  // namespace offprof
