#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensors/files/tensor_dtype.h"
#include "traces/io/new_file.h"

namespace offprof {

/// A tensor to write.
struct NewTensor {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> sizes;
};

/// Writes a safetensors file; the tensors' bytes are given piece by piece. The file replaces an older one
/// only at the end: see NewFile, also for errors.
class SafetensorsWriter {
 public:
  /// Writes the header. Throws Error (input) for a tensor name that is not printable, a duplicate, or
  /// `__metadata__`, for sizes beyond 64 bits, and for more names than fit into a header.
  SafetensorsWriter(const std::string& path, std::vector<NewTensor> tensors,
                    const std::map<std::string, std::string, std::less<>>& metadata = {});

  /// Returns the tensors in the order in which their bytes are expected: by falling width of their numbers,
  /// so that each is aligned, then by name.
  const std::vector<NewTensor>& tensors() const { return tensors_; }
  /// Appends bytes: any part of the sequence of all tensors' bytes.
  void write(std::string_view bytes);
  /// Completes the file after all bytes have been written. Must be the last call; without it there is no
  /// file.
  void finish();

 private:
  std::vector<NewTensor> tensors_;
  Bytes left_ = 0;  ///< bytes still to be written
  NewFile file_;
};

}  // namespace offprof
