#include "engine/tensors/torch_dtype.h"

#include "engine/torch/dtype_name.h"

namespace offprof {
namespace {

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

at::Tensor as_bits(const at::Tensor& tensor) {
  return tensor.view(bits_of_width(tensor.element_size()));
}

}  // namespace offprof
