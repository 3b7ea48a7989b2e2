#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensors/files/tensor_dtype.h"
#include "traces/new_file.h"

namespace offprof {

/// A tensor that is to be written.
struct NewTensor {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> sizes;
};

/// Writes a safetensors file, whose tensors' bytes come piece by piece. It is written beside the file that
/// it replaces in the end: see NewFile, and for what it throws.
class SafetensorsWriter {
 public:
  /// Writes the header. Throws Error (input) for tensors that cannot be: a name that is not printable, comes
  /// twice or is `__metadata__`; sizes beyond 64 bits; and for more names than a header can have.
  SafetensorsWriter(const std::string& path, std::vector<NewTensor> tensors,
                    const std::map<std::string, std::string, std::less<>>& metadata = {});

  /// In the order in which their bytes are expected: those with the widest numbers first, so that each is
  /// aligned, then by name.
  const std::vector<NewTensor>& tensors() const { return tensors_; }
  /// Adds bytes: any part of those of all tensors, one after the other.
  void write(std::string_view bytes);
  /// All bytes have come. The last call; without it there is no file.
  void finish();

 private:
  std::vector<NewTensor> tensors_;
  Bytes left_ = 0;  ///< bytes that are still to come
  NewFile file_;
};

}  // namespace offprof
