#include "engine/tensors/files/tensor_dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace offprof {
namespace {

struct DtypeRow {
  std::string_view name;
  int bits;
  std::string_view torch_name;  ///< empty: PyTorch has no such dtype
};

/// Names and bits, in the order of TensorDtype.
constexpr std::array<DtypeRow, 22> kDtypes = {{{"BOOL", 8, "bool"},
                                               {"F4", 4, "float4_e2m1fn_x2"},
                                               {"F6_E2M3", 6, ""},
                                               {"F6_E3M2", 6, ""},
                                               {"U8", 8, "uint8"},
                                               {"I8", 8, "int8"},
                                               {"F8_E5M2", 8, "float8_e5m2"},
                                               {"F8_E4M3", 8, "float8_e4m3fn"},
                                               {"F8_E8M0", 8, "float8_e8m0fnu"},
                                               {"F8_E4M3FNUZ", 8, "float8_e4m3fnuz"},
                                               {"F8_E5M2FNUZ", 8, "float8_e5m2fnuz"},
                                               {"I16", 16, "int16"},
                                               {"U16", 16, "uint16"},
                                               {"F16", 16, "float16"},
                                               {"BF16", 16, "bfloat16"},
                                               {"I32", 32, "int32"},
                                               {"U32", 32, "uint32"},
                                               {"F32", 32, "float32"},
                                               {"C64", 64, "complex64"},
                                               {"F64", 64, "float64"},
                                               {"I64", 64, "int64"},
                                               {"U64", 64, "uint64"}}};
static_assert(kDtypes.size() == static_cast<std::size_t>(TensorDtype::kU64) + 1);

}  // namespace

std::string_view name_of(TensorDtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype)).name;
}

std::optional<TensorDtype> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kDtypes.size(); ++i)
    if (kDtypes.at(i).name == name) return static_cast<TensorDtype>(i);
  return std::nullopt;
}

std::string_view torch_name(TensorDtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype)).torch_name;
}

std::optional<Bytes> torch_element_bytes(std::string_view name) {
  if (name == "complex32") return 4;  // safetensors files lack these two
  if (name == "complex128") return 16;
  for (const DtypeRow& row : kDtypes)
    if (!name.empty() && row.torch_name == name) return std::max(row.bits / 8, 1);
  return std::nullopt;
}

int bits_of(TensorDtype dtype) {
  return kDtypes.at(static_cast<std::size_t>(dtype)).bits;
}

std::optional<Bytes> bytes_of(TensorDtype dtype, std::span<const std::int64_t> sizes) {
  // Strides are products of sizes too, so the product must fit even if a size is 0.
  std::int64_t bits = bits_of(dtype);
  bool is_empty = false;
  for (const std::int64_t size : sizes) {
    if (size < 0 || __builtin_mul_overflow(bits, std::max(size, std::int64_t{1}), &bits)) return std::nullopt;
    is_empty |= size == 0;
  }
  if (is_empty) return 0;
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

std::string shape_text(std::span<const std::int64_t> sizes) {
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace offprof
