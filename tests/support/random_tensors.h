#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "engine/tensors/torch_dtype.h"
#include "tests/support/torch_test.h"

namespace offprof {

/// Returns all dtypes except the quantised ones.
inline std::vector<at::ScalarType> plain_dtypes() {
  std::vector<at::ScalarType> dtypes;
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i) {
    const auto dtype = static_cast<at::ScalarType>(i);
    if (!at::isQIntType(dtype)) dtypes.push_back(dtype);
  }
  return dtypes;
}

/// Returns a tensor of random bits, which may include NaN.
inline at::Tensor random_bits(const std::vector<std::int64_t>& sizes, at::ScalarType dtype,
                              std::uint64_t seed) {
  torch_allocator();  // before the first tensor is made
  const at::Tensor tensor = at::empty(sizes, at::TensorOptions(dtype));
  std::uint64_t state = seed;
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's linear congruential generator
    static_cast<unsigned char*>(tensor.mutable_data_ptr())[i] = static_cast<unsigned char>(state >> 56U);
  }
  return tensor;
}

/// Compares bit by bit, for any dtype, NaN included.
inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return bitwise_equal(as_bits(a), as_bits(b));
}

}  // namespace offprof
