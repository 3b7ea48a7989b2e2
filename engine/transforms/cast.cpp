#include "engine/transforms/cast.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <limits>

#include "engine/torch/dtype_name.h"

namespace offprof {
namespace {

/// Returns the number of bits of the significand, the implicit one included.
int significand_bits(at::ScalarType type) {
  return type == at::kBFloat16 ? 8 : 11;
}

double largest(at::ScalarType type) {
  return type == at::kBFloat16 ? static_cast<double>(std::numeric_limits<c10::BFloat16>::max())
                               : static_cast<double>(std::numeric_limits<c10::Half>::max());
}

double smallest_subnormal(at::ScalarType type) {
  return type == at::kBFloat16 ? static_cast<double>(std::numeric_limits<c10::BFloat16>::denorm_min())
                               : static_cast<double>(std::numeric_limits<c10::Half>::denorm_min());
}

}  // namespace

std::string Cast::name() const {
  return "cast:" + std::string(dtype_name(to_));
}

Bytes Cast::encoded_bytes(at::ScalarType /*type*/, std::int64_t elements) const {
  return elements * static_cast<Bytes>(c10::elementSize(to_));
}

Encoded Cast::encode(const at::Tensor& values) const {
  at::Tensor bytes =
      at::empty({encoded_bytes(values.scalar_type(), values.numel())}, values.options().dtype(at::kByte));
  bytes.view(to_).copy_(values);
  return {bytes};
}

at::Tensor Cast::decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const {
  at::Tensor values = at::empty({elements}, encoded.bytes.options().dtype(type));
  values.copy_(encoded.bytes.view(to_));
  return values;
}

at::Tensor Cast::error_bound(const at::Tensor& values) const {
  const at::Tensor size = values.to(at::kDouble).abs();
  const at::Tensor bound =
      (size * std::ldexp(1.0, -significand_bits(to_))).clamp_min(smallest_subnormal(to_));
  return bound.masked_fill(size.isfinite().logical_and(size > largest(to_)),
                           std::numeric_limits<double>::infinity());
}

}  // namespace offprof
