#pragma once

#include <string>

namespace offprof {

/// How far a parameter's gradient under a policy that loses something is from the exact one.
struct GradientError {
  std::string parameter;
  double max_abs = 0;        ///< of the differences; infinity or NaN where the gradient is not finite
  double relative_norm = 0;  ///< Euclidean norm of the difference over that of the exact gradient
  double cosine = 1;         ///< between the two

  bool operator==(const GradientError&) const = default;
};

}  // namespace offprof
