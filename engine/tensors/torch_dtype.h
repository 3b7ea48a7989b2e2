#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace offprof {

/// Returns the dtype for which dtype_name() returns `name`, such as `float32`; nullopt: there is none.
std::optional<at::ScalarType> scalar_type_named(std::string_view name);

/// Returns the same memory as integers of the same width, which LibTorch can copy for every dtype. `tensor`
/// must not be a conjugate or negative view.
at::Tensor as_bits(const at::Tensor& tensor);

}  // namespace offprof
