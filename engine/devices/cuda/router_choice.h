#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <vector>

namespace offprof {

/// Returns the results on the CPU, in order, of an operator by which a router chooses experts for each row of
/// its scores, if experts are balanced: see KnownValues. Undefined: not known. Empty if the operator is none.
std::vector<at::Tensor> balanced_choices(const at::RecordFunction& op);

}  // namespace offprof
