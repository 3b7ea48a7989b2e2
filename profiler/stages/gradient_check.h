#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/model/gradient_error.h"

namespace offprof {

/// Result of a comparison of gradients under a policy with exact ones.
struct GradientCheck {
  /// `bitwise`; `not applicable`; `lossy` if the policy may lose something, with the losses in `errors`;
  /// kNotReproducible and the size of the difference if plain passes differ too; or a description of the
  /// difference.
  std::string verdict;
  std::vector<GradientError> errors{};
};

/// Returns the error of each parameter that has a gradient. nullopt: the gradients differ in presence or
/// size.
std::optional<std::vector<GradientError>> gradient_errors(const std::vector<std::string>& names,
                                                          const std::vector<at::Tensor>& expected,
                                                          const std::vector<at::Tensor>& actual);

/// Returns `bitwise`, or the number of parameters whose gradients differ, the first of them, and the size of
/// the difference.
std::string compare_gradients(const std::vector<std::string>& names, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& actual);

/// Gradients of plain autograd. They are computed often enough to separate the effect of offloading from the
/// difference between any two passes: kernels that add atomically, such as those of flash attention, cuDNN
/// and scatter on a GPU, give different bits each time.
class GradientReference {
 public:
  /// Computes the gradients by parameter, anew in each call.
  using PlainPass = std::function<std::vector<at::Tensor>()>;

  GradientReference(std::vector<std::string> names, PlainPass plain)
      : names_(std::move(names)), plain_(std::move(plain)) {}

  /// Compares gradients under a policy with those of plain passes. `may_lose` is true if the policy may lose
  /// something. If a parameter's gradient differs, it must differ in plain passes as well, and at most ten
  /// times as much.
  GradientCheck check(const std::vector<at::Tensor>& actual, bool may_lose);
  /// Frees the gradients; the next check computes them again.
  void forget() { expected_.clear(); }

 private:
  struct Differences;

  void compute();
  void repeat();
  Differences compare(const std::vector<at::Tensor>& actual) const;

  std::vector<std::string> names_;
  PlainPass plain_;
  std::vector<at::Tensor> expected_;  ///< of the first plain pass; empty: not computed yet
  std::vector<double> noise_;         ///< by parameter: the largest difference of a later pass from the first
  int passes_ = 0;
};

}  // namespace offprof
