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
#include "traces/units.h"

namespace offprof {

/// No header is longer: the format's own limit (safetensors, `MAX_HEADER_SIZE`).
inline constexpr Bytes kMostHeaderBytes = 100'000'000;
/// No tensor has more: LibTorch's own limit for what operators take (`at::MAX_DIMS`).
inline constexpr std::size_t kMostDimensions = 64;
/// The member of a header that is no tensor.
inline constexpr std::string_view kMetadataName = "__metadata__";

/// What a header says of a tensor: numbers in row-major order, little-endian, none between others.
struct StoredTensor {
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> sizes;
  Bytes offset = 0;  ///< of its first byte in the file
  Bytes bytes = 0;
};

/// A safetensors file: its header, checked, in memory, and its tensors' bytes on the disk.
///
/// The format (github.com/huggingface/safetensors): the header's length in 8 bytes, little-endian; the
/// header, JSON, `{name: {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__": {text: text}}`;
/// the bytes, from which `begin` and `end` count.
class SafetensorsFile {
 public:
  /// Reads the header. Throws Error (input), with the file, the tensor and both sizes, for all that the
  /// format does not allow: a file that is too short or too long, a header beyond its limits or no JSON,
  /// names that come twice, unknown dtypes, sizes that do not fit the bytes or 64 bits, bytes of two tensors
  /// or none. Names are printable (see parse_json).
  explicit SafetensorsFile(std::shared_ptr<const ReadableFile> file);
  explicit SafetensorsFile(const std::string& path) : SafetensorsFile(open_readable(path)) {}

  const std::string& name() const { return file_->name(); }
  /// By name.
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  /// What `__metadata__` says; often that the file was written by PyTorch: `format`: `pt`.
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  /// Fills `room`, of the tensor's bytes, with those from `begin` on. By any thread.
  void read(const StoredTensor& tensor, std::span<char> room, Bytes begin = 0) const;

 private:
  std::shared_ptr<const ReadableFile> file_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace offprof
