#pragma once

#include <string>

namespace offprof {

/// Returns the folder of the Python package `offprof` that belongs to the running program: in `python` beside
/// it (a build folder), or in `../lib/offprof/python` (an installation). Throws Error (environment) if it is
/// missing.
std::string python_package_folder();

}  // namespace offprof
