#pragma once

#include "engine/devices/virtual_gpu/work/kernel_passes.h"

namespace offprof {

/// Returns the work of kernels of batch norms, poolings and convolutions of single channels.
WorkByName image_kernels();

/// Returns the time that cuDNN's kernels take for an element of an image whose channels come last, and each
/// of which has a filter of its own, as a share of the time of an elementwise kernel; 0 for other operators.
/// From cuDNN 9.19 on an H100.
double single_channels_share(const OpCall& op);

}  // namespace offprof
