#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// Begins the verdict on gradients of a model whose passes differ from each other without offloading too, and
/// with it no more than that.
inline constexpr std::string_view kNotReproducible = "not reproducible without offloading";

/// Whether a verdict, as in Trace, finds nothing wrong. Where something is lost on purpose, gradients cannot
/// be those without it.
inline bool gradients_pass(std::string_view verdict) {
  return verdict == "bitwise" || verdict == "not applicable" || verdict == "lossy" ||
         verdict.starts_with(kNotReproducible);
}

/// How far a parameter's gradient under a policy that loses something is from the exact one.
struct GradientError {
  std::string parameter;
  double max_abs = 0;        ///< of the differences; infinity or NaN where the gradient is not finite
  double relative_norm = 0;  ///< Euclidean norm of the difference over that of the exact gradient
  double cosine = 1;         ///< between the two

  bool operator==(const GradientError&) const = default;
};

}  // namespace offprof
