#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// First words of the verdict for a model whose gradients differ between passes even without offloading, and
/// by no more with offloading.
inline constexpr std::string_view kNotReproducible = "not reproducible without offloading";

/// Returns true if the verdict, as in Trace, reports no fault. `lossy` passes because the gradients of a
/// lossy policy cannot equal the exact ones.
inline bool gradients_pass(std::string_view verdict) {
  return verdict == "bitwise" || verdict == "not applicable" || verdict == "lossy" ||
         verdict.starts_with(kNotReproducible);
}

/// Distance between a parameter's gradient under a lossy policy and its exact gradient.
struct GradientError {
  std::string parameter;
  double max_abs = 0;        ///< largest difference; infinity or NaN if the gradient is not finite
  double relative_norm = 0;  ///< Euclidean norm of the difference over that of the exact gradient
  double cosine = 1;         ///< cosine of the angle between the two gradients

  bool operator==(const GradientError&) const = default;
};

}  // namespace offprof
