#pragma once

#include <c10/core/Device.h>

#include <ATen/core/Tensor.h>

#include <functional>

#include "engine/models/model.h"

namespace offprof {

/// Moves a model that was loaded on the CPU to `device`, with its inputs, parameters and buffers, and the
/// constants of its graphs (a module traced on a CPU names the CPU in them). 0-dimensional constants stay:
/// they compute shapes, and a shape must not wait for a device. Meta parameters (see meta_parameters.h) are
/// allocated there: normally distributed, with the small deviation of freshly initialized ones. `value_of`
/// returns the value of a parameter or buffer on the CPU, by default its own. `then` is called with each
/// parameter after it has moved.
void move_to_device(
    Model& model, c10::Device device,
    const std::function<void(const at::Tensor&)>& then = [](const at::Tensor&) {},
    const std::function<at::Tensor(const at::Tensor&)>& value_of = [](const at::Tensor& own) { return own; });

}  // namespace offprof
