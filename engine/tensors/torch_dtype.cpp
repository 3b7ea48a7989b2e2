#include "engine/tensors/torch_dtype.h"

#include <array>

#include "engine/torch/dtype_name.h"

namespace offprof {
namespace {

struct DtypePair {
  at::ScalarType torch;
  TensorDtype file;
};

constexpr std::array<DtypePair, 20> kPairs = {{{at::kBool, TensorDtype::kBool},
                                               {at::kFloat4_e2m1fn_x2, TensorDtype::kF4},
                                               {at::kByte, TensorDtype::kU8},
                                               {at::kChar, TensorDtype::kI8},
                                               {at::kFloat8_e5m2, TensorDtype::kF8E5M2},
                                               {at::kFloat8_e4m3fn, TensorDtype::kF8E4M3},
                                               {at::kFloat8_e8m0fnu, TensorDtype::kF8E8M0},
                                               {at::kFloat8_e4m3fnuz, TensorDtype::kF8E4M3Fnuz},
                                               {at::kFloat8_e5m2fnuz, TensorDtype::kF8E5M2Fnuz},
                                               {at::kShort, TensorDtype::kI16},
                                               {at::kUInt16, TensorDtype::kU16},
                                               {at::kHalf, TensorDtype::kF16},
                                               {at::kBFloat16, TensorDtype::kBF16},
                                               {at::kInt, TensorDtype::kI32},
                                               {at::kUInt32, TensorDtype::kU32},
                                               {at::kFloat, TensorDtype::kF32},
                                               {at::kComplexFloat, TensorDtype::kC64},
                                               {at::kDouble, TensorDtype::kF64},
                                               {at::kLong, TensorDtype::kI64},
                                               {at::kUInt64, TensorDtype::kU64}}};

at::ScalarType bits_of_width(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return at::kByte;
    case 2:
      return at::kShort;
    case 4:
      return at::kInt;
    case 8:
      return at::kLong;
    default:
      return at::kComplexDouble;
  }
}

}  // namespace

std::optional<at::ScalarType> scalar_type_named(std::string_view name) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i)
    if (dtype_name(static_cast<at::ScalarType>(i)) == name) return static_cast<at::ScalarType>(i);
  return std::nullopt;
}

std::optional<TensorDtype> file_dtype(at::ScalarType type) {
  if (type == at::kFloat4_e2m1fn_x2) return std::nullopt;  // the shapes differ: LibTorch counts pairs
  for (const DtypePair& pair : kPairs)
    if (pair.torch == type) return pair.file;
  return std::nullopt;
}

std::optional<at::ScalarType> scalar_type_of(TensorDtype dtype) {
  for (const DtypePair& pair : kPairs)
    if (pair.file == dtype) return pair.torch;
  return std::nullopt;
}

at::Tensor as_bits(const at::Tensor& tensor) {
  return tensor.view(bits_of_width(tensor.element_size()));
}

}  // namespace offprof
