#pragma once

#include "engine/transforms/transform.h"

namespace offprof {

/// `bits`: encodes each boolean in one bit, the first in the lowest bit of the first byte.
class Bits final : public Transform {
 public:
  std::string name() const override { return "bits"; }
  bool is_lossless() const override { return true; }
  bool takes(at::ScalarType type) const override { return type == at::kBool; }
  Bytes encoded_bytes(at::ScalarType type, std::int64_t elements) const override;
  Encoded encode(const at::Tensor& values) const override;
  at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;
};

}  // namespace offprof
