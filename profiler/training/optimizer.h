#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

namespace offprof {

/// Optimizer of a trainer. It creates what it keeps of a parameter in the first step that has a gradient of
/// it.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates the parameters that have a gradient.
  virtual void step() = 0;
  /// Returns the states that it keeps of the parameter so far, without master weights. Ask for one parameter
  /// after another, since tables of optimizers are ordered by addresses.
  virtual std::vector<at::Tensor> states_of(const at::Tensor& parameter) const = 0;
  /// Returns the copy of the parameter in float32 that it updates; undefined: none.
  virtual at::Tensor master_of(const at::Tensor& /*parameter*/) const { return {}; }
};

/// Returns the optimizer of that name over the parameters (parse_optimizer); null for `none`. Throws Error
/// (input) for any other name.
std::unique_ptr<Optimizer> make_optimizer(const std::string& name, const std::vector<at::Tensor>& parameters);

}  // namespace offprof
