#pragma once

#include <algorithm>
#include <vector>

namespace offprof::runtime {

/// cudnnTensorDescriptor_t and cudnnFilterDescriptor_t. Unlike those of other descriptors, their values can
/// be read back.
struct CudnnTensor {
  int dtype = 0;
  int format = 0;  ///< only of a filter
  std::vector<int> sizes;
  std::vector<int> strides;  ///< only of a tensor
};

/// Copies at most `room` values to `target`.
inline void give_values(const std::vector<int>& values, int room, int* target) {
  const auto count = std::min(values.size(), static_cast<std::size_t>(std::max(0, room)));
  std::copy_n(values.begin(), count, target);
}

}  // namespace offprof::runtime
