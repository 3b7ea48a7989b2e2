#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensors/files/safetensors.h"
#include "traces/base/units.h"

namespace offprof {

/// A value of an offloaded tensor on the disk is a safetensors file. Its tensor `value` has the numbers in
/// row-major order. The metadata has what the format lacks: LibTorch's dtype, and strides other than
/// row-major ones. A dtype that the format lacks is stored as bytes, with one more dimension. For a quantised
/// tensor, `value` has the integers, and `scale` and `zero_point` their parameters: one of each, or one per
/// index of `axis`.

/// Description of a value, as stored in its file.
struct ValueInfo {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< in numbers; empty: row-major
  Bytes bytes = 0;                      ///< of the numbers

  bool operator==(const ValueInfo&) const = default;
};

/// Returns the reason why a tensor cannot be written; nullptr: it can be.
const char* why_not_offloaded(const at::Tensor& tensor);

/// Returns the result that info_of() will have once the tensor is written. Strides are kept if no two numbers
/// share memory and no memory is unused.
ValueInfo info_of(const at::Tensor& tensor);
/// Throws Error (input) if the file has no value.
ValueInfo info_of(const SafetensorsFile& file);

/// Writes the tensor's value, from any device, atomically (see NewFile). Numbers that are row-major and on
/// the host are written without a copy. OFFPROF_CHECK that the tensor can be written.
void write_value(const std::string& path, const at::Tensor& tensor);

/// Reads the value, bit by bit, to the host. Throws Error (input) if the file has none.
at::Tensor read_value(const SafetensorsFile& file);

}  // namespace offprof
