#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace offprof {

/// Where the autograd graph of a part of a model ends towards its inputs: takes their gradients, and holds
/// none of their values.
class Boundary final : public torch::autograd::Node {
 public:
  static std::shared_ptr<Boundary> make();

  /// The same content, of which this takes the gradient. Inputs are numbered as they come.
  at::Tensor enter(const at::Tensor& value);
  torch::autograd::Edge edge(std::size_t input) {
    return {shared_from_this(), static_cast<std::uint32_t>(input)};
  }
  std::size_t inputs() const { return num_inputs(); }
  /// After a backward through the part, by input; undefined where there is none.
  std::vector<at::Tensor> take_gradients() { return std::move(gradients_); }

  std::string name() const override { return "offprof::Boundary"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  std::vector<at::Tensor> gradients_;
};

}  // namespace offprof
