#pragma once

#include <ATen/core/ivalue.h>

#include <functional>

namespace offprof {

/// Returns a copy of `value` with each tensor replaced by the result of `replace`. The order of the calls is
/// always the same. Lists, tuples and the values of dictionaries are searched; anything else is shared with
/// `value`.
c10::IValue with_tensors_replaced(const c10::IValue& value,
                                  const std::function<at::Tensor(const at::Tensor&)>& replace);

}  // namespace offprof
