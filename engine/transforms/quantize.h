#pragma once

#include <cstdint>

#include "engine/transforms/transform.h"

namespace offprof {

/// `quantize:uint8`, `quantize:uint8:BLOCK`: encodes each floating-point number in one byte, as a multiple of
/// a scale above the minimum:
///
///     scale = (max - min) / 255        code = round((x - min) / scale)        x' = min + code * scale
///
/// with min and scale of the whole tensor, or of each BLOCK consecutive elements. So |x' - x| <= scale / 2,
/// plus the rounding of the arithmetic: a few units in the last place of the largest number, and the rounding
/// of x's own type. Equal numbers are preserved exactly. NaN and infinities are preserved too: if there are
/// any, min and max are those of the finite numbers, and scale is (max - min) / 252, which leaves three codes
/// for them.
///
/// The work is done in pieces, so that temporary memory is bounded.
class Quantize final : public Transform {
 public:
  /// Maximum number of elements of a block.
  static constexpr std::int64_t kLargestBlock = std::int64_t{1} << 16;

  /// `block`: 1 to kLargestBlock elements; 0: the whole tensor.
  explicit Quantize(std::int64_t block = 0) : block_(block) {}

  std::string name() const override;
  bool is_lossless() const override { return false; }
  bool takes(at::ScalarType type) const override;
  Bytes encoded_bytes(at::ScalarType type, std::int64_t elements) const override;
  Encoded encode(const at::Tensor& values) const override;
  at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const override;
  at::Tensor error_bound(const at::Tensor& values) const override;

 private:
  std::int64_t block_;
};

}  // namespace offprof
