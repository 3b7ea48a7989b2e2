#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace offprof {

/// `bitwise`, or how many parameters' gradients differ, which first, and by how much.
std::string compare_gradients(const std::vector<std::string>& names, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& actual);

}  // namespace offprof
