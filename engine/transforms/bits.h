#pragma once

#include "engine/transforms/transform.h"

namespace offprof {

/// `bits`: encodes each boolean in one bit, the first in the lowest bit of the first byte.
class Bits final : public Transform {
 public:
  std::string name() const override { return "bits"; }
  bool is_lossless() const override { return true; }
  bool takes(at::ScalarType type) const override { return type == at::kBool; }
  Bytes packed_bytes(at::ScalarType type, std::int64_t elements) const override;
  Packed pack(const at::Tensor& values) const override;
  at::Tensor unpack(const Packed& packed, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;
};

}  // namespace offprof
