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
#include "traces/units.h"

namespace offprof {

/// A tensor of a checkpoint, as long as nobody asks for it.
struct TensorInfo {
  std::string
      dtype;  ///< as dtype_name() says it, `float32`; as the file does where LibTorch has no such dtype
  std::vector<std::int64_t> sizes;
  Bytes bytes = 0;   ///< that a load reads
  std::string file;  ///< where it lies
};

/// One file of tensors.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  virtual const std::map<std::string, TensorInfo, std::less<>>& tensors() const = 0;
  /// Reads a tensor that the file has, to the host.
  virtual at::Tensor read(std::string_view name) const = 0;
};

/// A checkpoint on the disk: in memory is only what its tensors are called and where they lie. Several
/// threads may ask for tensors at once.
class TensorStore {
 public:
  using Open = std::function<std::shared_ptr<const ReadableFile>(const std::string& path)>;

  /// Opens
  /// - a `.safetensors` file (see SafetensorsFile),
  /// - a `model.safetensors.index.json`, which says which tensor lies in which file beside it,
  /// - a folder with one of that name, or with `.safetensors` files whose tensors have different names,
  /// - a `.pt` file, as torch.save makes of a dictionary (see TensorArchive).
  ///
  /// Throws Error (input): nothing such; whatever the readers of these refuse; an index that names a tensor
  /// that its file lacks, or a file elsewhere. `open` is how files are opened.
  explicit TensorStore(const std::string& path, const Open& open = open_readable);

  /// By name.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }
  /// Of all tensors.
  Bytes bytes() const;
  /// Reads that one tensor. Throws Error (input) where there is none of that name, the disk refuses, or
  /// LibTorch has no such dtype; LibTorch's own exceptions come as they are.
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
