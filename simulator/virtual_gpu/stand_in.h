#pragma once

#include "simulator/virtual_gpu/virtual_gpu.h"

/// The virtual GPU of a program that links the stand-in libraries: what kVirtualGpuSymbol names.
extern "C" offprof::VirtualGpu* offprof_virtual_gpu();
