#include "engine/transforms/quantize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/signbit.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace offprof {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Highest code of a number, and highest code if three codes are reserved for NaN and infinities.
constexpr double kLevels = 255, kLevelsBesideSpecial = 252;
constexpr double kMinusInfinityCode = 253, kInfinityCode = 254, kNanCode = 255;
/// Number of elements processed at a time.
constexpr std::int64_t kPiece = std::int64_t{1} << 20;
/// Alignment of the blocks' numbers in the encoded bytes.
constexpr std::int64_t kAlignment = 8;
/// Each block stores its minimum and half its scale.
constexpr std::int64_t kNumbersPerBlock = 2;

/// Returns the type of the arithmetic for numbers of `type`.
at::ScalarType work_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

/// Consecutive elements that are processed together, as rows of `columns` elements: either whole blocks, one
/// per row, or a part of the only block.
struct Piece {
  std::int64_t begin = 0, rows = 1, columns = 0;
  std::int64_t block = 0;  ///< index of the first row's block

  at::Tensor of(const at::Tensor& values) const {
    return values.narrow(0, begin, rows * columns).view({rows, columns});
  }
  /// Returns the piece's rows of a tensor that has a row for each block.
  at::Tensor rows_of(const at::Tensor& blocks) const { return blocks.narrow(0, block, rows); }
};

/// Layout of the encoded bytes, and division of the work into pieces.
class Layout {
 public:
  Layout(at::ScalarType type, std::int64_t elements, std::int64_t block)
      : work_type_(work_type(type)), elements_(elements), block_(block == 0 ? elements : block) {}

  std::int64_t blocks() const { return (elements_ + block_ - 1) / block_; }
  Bytes numbers_begin() const { return (elements_ + kAlignment - 1) / kAlignment * kAlignment; }
  Bytes bytes() const {
    const auto number = static_cast<Bytes>(c10::elementSize(work_type_));
    return numbers_begin() + blocks() * kNumbersPerBlock * number;
  }

  at::Tensor codes(const at::Tensor& bytes) const { return bytes.narrow(0, 0, elements_); }
  /// Returns the bytes between the codes and the blocks' numbers.
  at::Tensor padding(const at::Tensor& bytes) const {
    return bytes.narrow(0, elements_, numbers_begin() - elements_);
  }
  at::Tensor lows(const at::Tensor& bytes) const { return numbers(bytes, 0); }
  /// Returns half the scales; halved so that the range of a type does not overflow. The sign bit is set (also
  /// of -0) if the block has NaN or infinities.
  at::Tensor half_scales(const at::Tensor& bytes) const { return numbers(bytes, 1); }

  template <typename Work>
  void each_piece(const Work& work) const {
    if (block_ > Quantize::kLargestBlock || block_ >= elements_) return each_part(work);
    const std::int64_t rows = std::max<std::int64_t>(1, kPiece / block_), whole = elements_ / block_;
    for (std::int64_t row = 0; row < whole; row += rows)
      work(Piece{row * block_, std::min(rows, whole - row), block_, row});
    if (whole < blocks()) work(Piece{whole * block_, 1, elements_ - whole * block_, whole});
  }

 private:
  /// Processes the only block in parts.
  template <typename Work>
  void each_part(const Work& work) const {
    for (std::int64_t begin = 0; begin < elements_; begin += kPiece)
      work(Piece{begin, 1, std::min(kPiece, elements_ - begin), 0});
  }

  at::Tensor numbers(const at::Tensor& bytes, std::int64_t which) const {
    const Bytes begin = numbers_begin();
    return bytes.narrow(0, begin, bytes.numel() - begin)
        .view(work_type_)
        .view({blocks(), kNumbersPerBlock})
        .narrow(1, which, 1);
  }

  at::ScalarType work_type_;
  std::int64_t elements_, block_;
};

/// Minimum and maximum of each block's finite numbers; `special`: the block has NaN or infinities.
struct Ranges {
  at::Tensor low, high, special;

  Ranges(std::int64_t blocks, const at::TensorOptions& options)
      : low(at::full({blocks, 1}, kInfinity, options)),
        high(at::full({blocks, 1}, -kInfinity, options)),
        special(at::zeros({blocks, 1}, options.dtype(at::kBool))) {}

  void add(const Piece& piece, const at::Tensor& values) {
    const at::Tensor finite = values.isfinite();
    at::Tensor low_here = piece.rows_of(low), high_here = piece.rows_of(high);
    at::minimum_out(low_here, low_here, at::where(finite, values, kInfinity).amin(1, /*keepdim=*/true));
    at::maximum_out(high_here, high_here, at::where(finite, values, -kInfinity).amax(1, /*keepdim=*/true));
    piece.rows_of(special).logical_or_(finite.all(1, /*keepdim=*/true).logical_not_());
  }
};

double smallest_of(at::ScalarType type) {
  return type == at::kDouble ? std::numeric_limits<double>::denorm_min()
                             : static_cast<double>(std::numeric_limits<float>::denorm_min());
}

/// Writes the numbers of all blocks.
void write_numbers(const Ranges& ranges, const at::Tensor& lows, const at::Tensor& half_scales) {
  const at::Tensor none = ranges.low.gt(ranges.high);  // no number is finite
  lows.copy_(ranges.low.masked_fill(none, 0));
  const at::Tensor range = ranges.high.masked_fill(none, 0).mul_(0.5).sub_(lows.mul(0.5));
  const at::Tensor levels =
      at::full(range.sizes(), kLevels, range.options()).masked_fill_(ranges.special, kLevelsBesideSpecial);
  const at::Tensor half =
      at::where(range.gt(0), range.div(levels).clamp_min_(smallest_of(range.scalar_type())),
                at::zeros({}, range.options()));
  half_scales.copy_(at::where(ranges.special, half.neg(), half));
}

}  // namespace

std::string Quantize::name() const {
  return block_ == 0 ? "quantize:uint8" : "quantize:uint8:" + std::to_string(block_);
}

bool Quantize::takes(at::ScalarType type) const {
  return type == at::kFloat || type == at::kDouble || type == at::kHalf || type == at::kBFloat16;
}

Bytes Quantize::encoded_bytes(at::ScalarType type, std::int64_t elements) const {
  return Layout(type, elements, block_).bytes();
}

Encoded Quantize::encode(const at::Tensor& values) const {
  const Layout layout(values.scalar_type(), values.numel(), block_);
  const at::ScalarType work = work_type(values.scalar_type());
  at::Tensor bytes = at::empty({layout.bytes()}, values.options().dtype(at::kByte));
  layout.padding(bytes).zero_();
  const at::Tensor codes = layout.codes(bytes);
  const at::Tensor lows = layout.lows(bytes), half_scales = layout.half_scales(bytes);
  {
    Ranges ranges(layout.blocks(), values.options().dtype(work));
    layout.each_piece([&](const Piece& piece) { ranges.add(piece, piece.of(values).to(work)); });
    write_numbers(ranges, lows, half_scales);
  }
  const at::Tensor low_halves = lows.mul(0.5);
  const at::Tensor divisors = half_scales.abs();
  divisors.masked_fill_(divisors.eq(0), 1);
  layout.each_piece([&](const Piece& piece) {
    const at::Tensor code = piece.of(values).to(work).mul(0.5);
    code.sub_(piece.rows_of(low_halves)).div_(piece.rows_of(divisors)).round_();
    piece.of(codes).copy_(code.nan_to_num_(kNanCode, kInfinityCode, kMinusInfinityCode));
  });
  return {bytes};
}

at::Tensor Quantize::decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const {
  const Layout layout(type, elements, block_);
  at::Tensor values = at::empty({elements}, encoded.bytes.options().dtype(type));
  const at::Tensor codes = layout.codes(encoded.bytes), half_scales = layout.half_scales(encoded.bytes);
  const at::Tensor low_halves = layout.lows(encoded.bytes).mul(0.5);
  const at::Tensor special = half_scales.signbit(), scales = half_scales.abs();
  layout.each_piece([&](const Piece& piece) {
    const at::Tensor code = piece.of(codes), special_here = piece.rows_of(special);
    const at::Tensor value = code.to(work_type(type));
    value.mul_(piece.rows_of(scales)).add_(piece.rows_of(low_halves)).mul_(2);
    value.masked_fill_(code.eq(kNanCode).logical_and_(special_here),
                       std::numeric_limits<double>::quiet_NaN());
    value.masked_fill_(code.eq(kInfinityCode).logical_and_(special_here), kInfinity);
    value.masked_fill_(code.eq(kMinusInfinityCode).logical_and_(special_here), -kInfinity);
    piece.of(values).copy_(value);
  });
  return values;
}

at::Tensor Quantize::error_bound(const at::Tensor& values) const {
  const at::ScalarType type = values.scalar_type();
  const Layout layout(type, values.numel(), block_);
  const Encoded encoded = encode(values);
  const at::Tensor half_scales = layout.half_scales(encoded.bytes).to(at::kDouble).abs();
  // Units in the last place, of the arithmetic's type and of the values' own type.
  constexpr double kRounding = 4;
  const double unit =
      std::max(at::elementSize(type) == 2 ? 0x1p-8 : 0.0, type == at::kDouble ? 0x1p-52 : 0x1p-23);
  at::Tensor bound = at::empty({values.numel()}, values.options().dtype(at::kDouble));
  layout.each_piece([&](const Piece& piece) {
    const at::Tensor here = piece.of(values).to(at::kDouble);
    const at::Tensor largest = at::where(here.isfinite(), here, 0.0).abs().amax(1, /*keepdim=*/true);
    piece.of(bound).copy_(piece.rows_of(half_scales) + largest * (kRounding * unit) + 4 * smallest_of(type));
  });
  return bound;
}

}  // namespace offprof
