#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <vector>

namespace offprof {

/// Returns the optimizer of that name (none, sgd or adamw) over the parameters; null for none. Throws Error
/// (input) for any other name.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<at::Tensor>& parameters);

/// Returns the moments that the optimizer keeps of the parameter so far. Ask for one parameter after another:
/// the order of the optimizer's own table depends on addresses and differs between runs.
std::vector<at::Tensor> moments_of(const torch::optim::Optimizer& optimizer, const at::Tensor& parameter);

}  // namespace offprof
