#pragma once

#include "engine/devices/virtual_gpu/virtual_gpu.h"

/// Returns the virtual GPU of a program that links the stand-in libraries. kVirtualGpuSymbol names this
/// function.
extern "C" offprof::VirtualGpu* offprof_virtual_gpu();
