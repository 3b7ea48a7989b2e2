#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

#include "engine/tensors/files/tensor_dtype.h"

namespace offprof {

/// The dtype that dtype_name() calls so: `float32`. nullopt: there is none.
std::optional<at::ScalarType> scalar_type_named(std::string_view name);

/// What safetensors files call a dtype; nullopt: they do not have it, as complex128.
std::optional<TensorDtype> file_dtype(at::ScalarType type);

/// LibTorch's dtype of the same numbers; nullopt: it has none, as for numbers of 6 bits. A number of `F4` is
/// half a one of LibTorch's.
std::optional<at::ScalarType> scalar_type_of(TensorDtype dtype);

/// The same memory as whole numbers of the same width, which LibTorch can copy whatever the dtype is. Neither
/// a conjugate nor a negative view.
at::Tensor as_bits(const at::Tensor& tensor);

}  // namespace offprof
