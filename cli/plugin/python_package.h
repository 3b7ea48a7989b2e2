#pragma once

#include <string>

namespace offprof {

/// Returns the folder of the Python package `offprof` that belongs to the running program: in `python` beside
/// it (a build folder), in `../lib/offprof/python` (an installation), or in `..` (a wheel). Throws Error
/// (environment) if it is missing.
std::string python_package_folder();

/// Returns the Python that runs programs: `given`, or that of the active virtual environment (VIRTUAL_ENV),
/// or `python3`: a path, or a name to be looked up in PATH. Throws Error (environment) if there is no such
/// program.
std::string choose_python(const std::string& given);

}  // namespace offprof
