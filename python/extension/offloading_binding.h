#pragma once

#include <pybind11/pybind11.h>

namespace offprof {

/// Adds the classes `Offloading` and `Boundary` to the module: ProgramOffloading for offprof.activations.
void bind_offloading(pybind11::module_& module);

}  // namespace offprof
