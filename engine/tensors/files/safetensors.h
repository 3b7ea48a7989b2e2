#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensors/files/readable_file.h"
#include "engine/tensors/files/tensor_dtype.h"
#include "traces/base/units.h"

namespace offprof {

/// Maximum size of a header, a limit of the format (safetensors, `MAX_HEADER_SIZE`).
inline constexpr Bytes kMostHeaderBytes = 100'000'000;
/// Maximum number of dimensions: LibTorch's limit for arguments of operators (`at::MAX_DIMS`).
inline constexpr std::size_t kMostDimensions = 64;
/// Name of the header's only member that is not a tensor.
inline constexpr std::string_view kMetadataName = "__metadata__";

/// A tensor as described by a header: row-major, little-endian, contiguous numbers.
struct StoredTensor {
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> sizes;
  Bytes offset = 0;  ///< of its first byte in the file
  Bytes bytes = 0;
};

/// A safetensors file: its checked header in memory, and its tensors' bytes on the disk.
///
/// The format (github.com/huggingface/safetensors): the header's length in 8 bytes, little-endian; the
/// header, JSON, `{name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {text: text}}`;
/// the tensors' bytes, where `begin` and `end` count from 0.
class SafetensorsFile {
 public:
  /// Reads the header. Throws Error (input), with the file, the tensor and both sizes, for violations of the
  /// format: a file that is too short or too long, a header beyond its limits or not JSON, duplicate names,
  /// unknown dtypes, sizes that do not fit the bytes or 64 bits, and bytes that belong to two tensors or to
  /// none. Names are printable (see parse_json).
  explicit SafetensorsFile(std::shared_ptr<const ReadableFile> file);
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(open_readable(path)) {}

  const std::string& name() const { return file_->name(); }
  /// Returns the tensors by name.
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  /// Returns the texts of `__metadata__`, often `format`: `pt` for a file written by PyTorch.
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  /// Fills `room` with the tensor's bytes from `begin` on. May be called from any thread.
  void read(const StoredTensor& tensor, std::span<char> room, Bytes begin = 0) const;

 private:
  std::shared_ptr<const ReadableFile> file_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace offprof
