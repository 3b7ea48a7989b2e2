#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <string>
#include <vector>

#include "engine/torch/torch_compat.h"

namespace offprof {

/// Input boundary of the autograd graph of a part of a model: collects the gradients of the part's inputs,
/// and holds none of their values.
class Boundary final : public torch::autograd::Node {
 public:
  static NodePointerTo<Boundary> make();

  /// Returns a tensor with the same content, whose gradient this node collects. Inputs are numbered in the
  /// order of calls.
  at::Tensor enter(const at::Tensor& value);
  torch::autograd::Edge edge(std::size_t input) { return {getptr(), static_cast<std::uint32_t>(input)}; }
  std::size_t inputs() const { return num_inputs(); }
  /// Returns the gradients by input, after a backward through the part; undefined if an input has none.
  std::vector<at::Tensor> take_gradients() { return std::move(gradients_); }

  std::string name() const override { return "offprof::Boundary"; }

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;

  std::vector<at::Tensor> gradients_;
};

}  // namespace offprof
