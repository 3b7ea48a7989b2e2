#pragma once

#include <optional>

#include "engine/devices/virtual_gpu/work/op_work.h"

namespace offprof {

/// Describes a convolution of [images, channels, height, width] with filters [filters, channels, ..]; nullopt
/// for one of single channels, whose kernels are others, for a transposed one, and for operands that do not
/// fit.
///
/// In cuDNN 9.19 on an H100, images whose channels do not come last are brought into that order before each
/// product, and the result back after it. With filters of one pixel, images are matrices as they are, if all
/// of their pixels count and rows of that many elements are aligned.
std::optional<ConvolutionShape> convolution_shape(const OpCall& op, double flops);

}  // namespace offprof
