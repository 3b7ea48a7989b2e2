#pragma once

#include <string_view>

namespace offprof {

/// Returns the family of an operator (`aten::addmm`: `products`), whose kernels the cost model may get wrong
/// in the same way. `other` for operators without a family of their own, and for names that are not
/// operators.
std::string_view family_of(std::string_view op);

}  // namespace offprof
