#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tensors/files/safetensors.h"
#include "traces/units.h"

namespace offprof {

/// A value of an offloaded tensor on the disk: a safetensors file. Its tensor `value` has the numbers in
/// row-major order; the metadata has what the format lacks: LibTorch's dtype, and strides that are not
/// row-major. A dtype that the format does not know is bytes there, with one more dimension. Of a quantised
/// tensor `value` has the whole numbers as they are, and `scale` and `zero_point` what they mean: one of
/// each, or one for each index of `axis`.

/// What a file says of its value.
struct ValueInfo {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};  ///< in numbers; empty: row-major
  Bytes bytes = 0;                      ///< of the numbers

  bool operator==(const ValueInfo&) const = default;
};

/// Why a tensor cannot be written; nullptr: it can.
const char* why_not_offloaded(const at::Tensor& tensor);

/// What info_of() would say once it is written. Strides are kept where no two numbers share memory and none
/// is unused.
ValueInfo info_of(const at::Tensor& tensor);
/// Throws Error (input) where the file holds no value.
ValueInfo info_of(const SafetensorsFile& file);

/// Writes the tensor's value, of any device, atomically (see NewFile); the numbers go to the disk from where
/// they lie if they are row-major and on the host. OFFPROF_CHECK that it can be written.
void write_value(const std::string& path, const at::Tensor& tensor);

/// The value, bit by bit, on the host. Throws Error (input) where the file holds none.
at::Tensor read_value(const SafetensorsFile& file);

}  // namespace offprof
