#include "engine/slices/boundary.h"

#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace offprof {

NodePointerTo<Boundary> Boundary::make() {
  return make_node<Boundary>();
}

/// Uses tensor_data because it keeps the version counter, so that in-place edits are detected, and drops the
/// history.
at::Tensor Boundary::enter(const at::Tensor& value) {
  at::Tensor inside = value.tensor_data();
  const std::uint32_t input = add_input_metadata(inside);
  torch::autograd::impl::set_gradient_edge(inside, {getptr(), input});
  return inside;
}

torch::autograd::variable_list Boundary::apply(torch::autograd::variable_list&& gradients) {
  gradients_ = std::move(gradients);
  return {};
}

}  // namespace offprof
