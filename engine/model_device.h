#pragma once

#include <c10/core/Device.h>

#include <ATen/core/Tensor.h>

#include <functional>

#include "engine/model.h"

namespace offprof {

/// Moves a model that was loaded on the CPU, with its inputs, to `device`: parameters and buffers, and what
/// its graphs have as constants (a module traced on a CPU names the CPU in them). 0-dimensional constants
/// stay: they compute shapes, and a shape must not wait for a device. Weights that take no room (see
/// weightless.h) come to be there: normally distributed, as small as fresh weights are. `then` is called with
/// each parameter that has come there.
void move_to_device(
    Model& model, c10::Device device,
    const std::function<void(const at::Tensor&)>& then = [](const at::Tensor&) {});

}  // namespace offprof
