#pragma once

#include <c10/core/ScalarType.h>

#include <string_view>

namespace offprof {

/// What a Python user would call the dtype: `float32`. Lives as long as the process.
std::string_view dtype_name(at::ScalarType type);

}  // namespace offprof
