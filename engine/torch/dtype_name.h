#pragma once

#include <c10/core/ScalarType.h>

#include <string_view>

namespace offprof {

/// Returns the dtype's name in Python: `float32`. It lives as long as the process.
std::string_view dtype_name(at::ScalarType type);

}  // namespace offprof
