#pragma once

#include <cstdint>

#include "engine/transforms/transform.h"

namespace offprof {

/// `quantize:uint8`, `quantize:uint8:BLOCK`: floating-point numbers in one byte each, as multiples of a scale
/// above the least of them:
///
///     scale = (max - min) / 255        code = round((x - min) / scale)        x' = min + code * scale
///
/// with min and scale of the whole tensor, or of each BLOCK consecutive elements. So |x' - x| <= scale / 2,
/// but for what the arithmetic itself rounds: a few units in the last place of the largest number, and what
/// x's own type does. Where all numbers are equal they come back exactly. NaN and infinities come back as
/// they are: where there are any, min and max are those of the finite numbers, and scale is (max - min) /
/// 252, which leaves three codes for them.
///
/// It works in pieces, so that the memory it takes beside the tensor's is bounded.
class Quantize final : public Transform {
 public:
  /// The most that a block may have.
  static constexpr std::int64_t kLargestBlock = std::int64_t{1} << 16;

  /// `block`: 1 to kLargestBlock elements; 0: all of the tensor.
  explicit Quantize(std::int64_t block = 0) : block_(block) {}

  std::string name() const override;
  bool is_lossless() const override { return false; }
  bool takes(at::ScalarType type) const override;
  Bytes packed_bytes(at::ScalarType type, std::int64_t elements) const override;
  Packed pack(const at::Tensor& values) const override;
  at::Tensor unpack(const Packed& packed, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;

 private:
  std::int64_t block_;
};

}  // namespace offprof
