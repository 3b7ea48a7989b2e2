#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "traces/base/units.h"

namespace offprof {

/// Number types of safetensors files, in the order of the format's own list (its crate's `Dtype`), which is
/// the sort order of tensors with numbers of the same width.
enum class TensorDtype : std::uint8_t {
  kBool,
  kF4,  ///< two numbers per byte
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

/// Returns the name in files: `BF16`.
std::string_view name_of(TensorDtype dtype);

/// Returns the type with that name; nullopt: there is none.
std::optional<TensorDtype> dtype_named(std::string_view name);

/// Returns PyTorch's name of the same numbers, without `torch.`: `bfloat16`; empty: it has none (6-bit
/// numbers). An element of PyTorch's `float4_e2m1fn_x2` has two numbers of `F4`.
std::string_view torch_name(TensorDtype dtype);

/// Returns the bytes of an element of PyTorch's dtype with that name, quantised ones excluded; nullopt: there
/// is none.
std::optional<Bytes> torch_element_bytes(std::string_view name);

/// Returns the bits of one number.
int bits_of(TensorDtype dtype);

/// Returns the bytes of a tensor with these sizes; nullopt: not a whole number of bytes, or a size is
/// negative, or the product exceeds 64 bits, even if another size is 0.
std::optional<Bytes> bytes_of(TensorDtype dtype, std::span<const std::int64_t> sizes);

/// Returns the sizes as text: `[2, 3]`.
std::string shape_text(std::span<const std::int64_t> sizes);

}  // namespace offprof
