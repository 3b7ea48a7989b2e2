#pragma once

#include <ATen/core/ivalue.h>

#include <functional>

namespace offprof {

/// A copy of `value` in which each tensor is what `replace` makes of it, in an order that is always the same.
/// Looks into lists, tuples and the values of dictionaries; anything else is shared with `value`.
c10::IValue with_tensors_replaced(const c10::IValue& value,
                                  const std::function<at::Tensor(const at::Tensor&)>& replace);

}  // namespace offprof
