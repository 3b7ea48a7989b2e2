#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/gradient_error.h"

namespace offprof {

/// Gradients under a policy against exact ones.
struct GradientCheck {
  /// `bitwise`; `not applicable`; `lossy`, where the policy may lose something and `errors` say what;
  /// kNotReproducible and by how much, where plain passes differ too; or what differs.
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

/// Gradients of plain autograd, computed as often as it takes to tell what offloading changes from what any
/// two passes differ by: kernels that add up atomically, as those of flash attention, cuDNN and scatter do on
/// a GPU, give other bits each time.
class GradientReference {
 public:
  /// By parameter, each time anew.
  using PlainPass = std::function<std::vector<at::Tensor>()>;

  GradientReference(std::vector<std::string> names, PlainPass plain)
      : names_(std::move(names)), plain_(std::move(plain)) {}

  /// Holds gradients under a policy against those of plain passes. `may_lose`: the policy may lose something.
  /// A parameter whose gradient differs must do so in plain passes as well, and at most ten times as
  /// much.
  GradientCheck check(const std::vector<at::Tensor>& actual, bool may_lose);
  /// Gives back the memory of the gradients; the next check computes them again.
  void forget() { expected_.clear(); }

 private:
  struct Differences;

  void compute();
  void repeat();
  Differences compare(const std::vector<at::Tensor>& actual) const;

  std::vector<std::string> names_;
  PlainPass plain_;
  std::vector<at::Tensor> expected_;  ///< of the first plain pass; empty: none yet
  std::vector<double> noise_;         ///< by parameter: the largest difference of a later pass from it
  int passes_ = 0;
};

}  // namespace offprof
