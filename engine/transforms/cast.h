#pragma once

#include "engine/transforms/transform.h"

namespace offprof {

/// `cast:bfloat16`, `cast:float16`: encodes float32 and float64 as a 16-bit type, rounded to nearest. The
/// relative error is at most 2^-8 or 2^-11. The float16 range ends at 65504: larger values become infinity.
/// Below 2^-14, the absolute error is at most 2^-25.
class Cast final : public Transform {
 public:
  /// `to`: kBFloat16 or kHalf.
  explicit Cast(at::ScalarType to) : to_(to) {}

  std::string name() const override;
  bool is_lossless() const override { return false; }
  bool takes(at::ScalarType type) const override { return type == at::kFloat || type == at::kDouble; }
  Bytes encoded_bytes(at::ScalarType type, std::int64_t elements) const override;
  Encoded encode(const at::Tensor& values) const override;
  at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;

 private:
  at::ScalarType to_;
};

}  // namespace offprof
