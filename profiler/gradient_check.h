#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "traces/gradient_error.h"

namespace offprof {

/// Gradients under a policy against exact ones.
struct GradientCheck {
  /// `bitwise`; `not applicable`; `lossy`, where the policy may lose something and `errors` say what; or what
  /// differs.
  std::string verdict;
  std::vector<GradientError> errors{};
};

/// By parameter that has a gradient. nullopt: the two do not even have the same gradients of the same sizes.
std::optional<std::vector<GradientError>> gradient_errors(const std::vector<std::string>& names,
                                                          const std::vector<at::Tensor>& expected,
                                                          const std::vector<at::Tensor>& actual);

/// `bitwise`, or how many parameters' gradients differ, which first, and by how much.
std::string compare_gradients(const std::vector<std::string>& names, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& actual);

}  // namespace offprof
