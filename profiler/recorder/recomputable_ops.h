#pragma once

#include <string_view>

namespace offprof {

/// Returns true if the operator, such as `aten::gelu`, always gives the same bits for the same input on one
/// device, and is cheap compared with matrix products. None of these operators draws random numbers. Only
/// those whose schema says so change or return their arguments.
bool is_recomputable(std::string_view op);

}  // namespace offprof
