#pragma once

#include <c10/core/Device.h>

#include "engine/model.h"

namespace offprof {

/// Moves a model that was loaded on the CPU, with its inputs, to `device`: parameters and buffers, and what
/// its graphs have as constants (a module traced on a CPU names the CPU in them). 0-dimensional constants
/// stay: they compute shapes, and a shape must not wait for a device. Weights that take no room (see
/// weightless.h) come to be there: normally distributed, as small as fresh weights are.
void move_to_device(Model& model, c10::Device device);

}  // namespace offprof
