#include "engine/transforms/bits.h"

#include <ATen/ops/bitwise_left_shift.h>
#include <ATen/ops/bitwise_right_shift.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

namespace offprof {
namespace {

constexpr std::int64_t kBitsPerByte = 8;

/// Returns every eighth element, starting at `bit`.
at::Tensor lane(const at::Tensor& values, std::int64_t bit) {
  return values.slice(0, std::min(bit, values.numel()), std::nullopt, kBitsPerByte);
}

}  // namespace

Bytes Bits::encoded_bytes(at::ScalarType /*type*/, std::int64_t elements) const {
  return (elements + kBitsPerByte - 1) / kBitsPerByte;
}

Encoded Bits::encode(const at::Tensor& values) const {
  const at::Tensor ones = values.view(at::kByte);
  at::Tensor bytes = at::zeros({encoded_bytes(at::kBool, values.numel())}, values.options().dtype(at::kByte));
  for (std::int64_t bit = 0; bit < kBitsPerByte; ++bit) {
    const at::Tensor those = lane(ones, bit);
    bytes.narrow(0, 0, those.numel()).bitwise_or_(at::bitwise_left_shift(those, bit));
  }
  return {bytes};
}

at::Tensor Bits::decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const {
  at::Tensor values = at::empty({elements}, encoded.bytes.options().dtype(type));
  const at::Tensor ones = values.view(at::kByte);
  for (std::int64_t bit = 0; bit < kBitsPerByte; ++bit) {
    const at::Tensor those = lane(ones, bit);
    those.copy_(at::bitwise_right_shift(encoded.bytes.narrow(0, 0, those.numel()), bit).bitwise_and_(1));
  }
  return values;
}

at::Tensor Bits::error_bound(const at::Tensor& values) const {
  return at::zeros_like(values, values.options().dtype(at::kDouble));
}

}  // namespace offprof
