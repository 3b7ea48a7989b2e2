#include "traces/model/tensor_layout.h"

#include <algorithm>

namespace offprof {

bool is_dense(const TensorLayout& layout) {
  std::vector<std::pair<std::int64_t, std::int64_t>> by_stride;  // stride, size
  for (std::size_t i = 0; i < layout.sizes.size() && i < layout.strides.size(); ++i) {
    if (layout.sizes[i] == 0) return true;
    if (layout.sizes[i] > 1) by_stride.emplace_back(layout.strides[i], layout.sizes[i]);
  }
  std::sort(by_stride.begin(), by_stride.end());
  std::int64_t next = 1;
  for (const auto& [stride, size] : by_stride) {
    if (stride != next || __builtin_mul_overflow(next, size, &next)) return false;
  }
  return true;
}

std::int64_t elements_of(const TensorLayout& layout) {
  std::int64_t elements = 1;
  for (const std::int64_t size : layout.sizes)
    if (__builtin_mul_overflow(elements, size, &elements)) return 0;
  return elements;
}

}  // namespace offprof
