#pragma once

#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/work/op_work.h"

namespace offprof {

/// Returns the seconds of the products of the convolution of `work`, or of its gradients, each of which takes
/// the same operations. `rate`: operations in a second that large matrix products reach.
double convolution_seconds(const DeviceProfile& profile, const OpWork& work, double rate);

/// Returns the seconds of the kernels beside those products: they reorder operands, and add up the parts of
/// the gradient of a weight.
double beside_products_seconds(const DeviceProfile& profile, const ConvolutionShape& shape);

}  // namespace offprof
