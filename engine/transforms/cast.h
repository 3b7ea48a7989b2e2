#pragma once

#include "engine/transforms/transform.h"

namespace offprof {

/// `cast:bfloat16`, `cast:float16`: float32 and float64 in a type of 16 bits, rounded to nearest. Off by at
/// most 2^-8 or 2^-11 of a value. float16 ends at 65504: what is above comes back as infinity, and below
/// 2^-14 values are 2^-25 off at most.
class Cast final : public Transform {
 public:
  /// `to`: kBFloat16 or kHalf.
  explicit Cast(at::ScalarType to) : to_(to) {}

  std::string name() const override;
  bool is_lossless() const override { return false; }
  bool takes(at::ScalarType type) const override { return type == at::kFloat || type == at::kDouble; }
  Bytes packed_bytes(at::ScalarType type, std::int64_t elements) const override;
  Packed pack(const at::Tensor& values) const override;
  at::Tensor unpack(const Packed& packed, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;

 private:
  at::ScalarType to_;
};

}  // namespace offprof
