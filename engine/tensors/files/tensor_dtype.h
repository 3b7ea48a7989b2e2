#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/units.h"

namespace offprof {

/// The types of numbers that safetensors files have, in the order of the format's own list (its crate's
/// `Dtype`), by which tensors of one size are sorted there.
enum class TensorDtype : std::uint8_t {
  kBool,
  kF4,  ///< two numbers a byte
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

/// As it stands in files: `BF16`.
std::string_view name_of(TensorDtype dtype);

/// The type of that name; nullopt where there is none.
std::optional<TensorDtype> dtype_named(std::string_view name);

/// Bits that a number takes.
int bits_of(TensorDtype dtype);

/// What so many numbers take. nullopt: it is no whole number of bytes, or a size is negative, or they are
/// beyond 64 bits, be it that another size is 0.
std::optional<Bytes> bytes_of(TensorDtype dtype, std::span<const std::int64_t> sizes);

/// `[2, 3]`.
std::string shape_text(std::span<const std::int64_t> sizes);

}  // namespace offprof
