#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/plugin/plugin.h"

namespace offprof {

/// Returns the possible locations of the engine library, best first: beside the program (a build folder),
/// in `../lib/offprof` (an installation), and in `..` (a wheel).
std::vector<std::string> engine_places(const std::string& program_folder);

/// Returns the folder that contains the running program.
std::string program_folder();

/// Returns the folder of the virtual GPU's libraries, which is beside the engine.
std::string virtual_gpu_folder();

/// Returns the first of `places` at which a file exists.
std::optional<std::string> find_engine(const std::vector<std::string>& places);

/// Opens the engine library and LibTorch with it, which takes about a second. The library stays open and owns
/// the returned object. Throws Error (environment) if the library is in none of the places (the small build
/// without the engine), or if it cannot be opened.
EnginePlugin& load_engine(const std::vector<std::string>& places);

/// Opens the engine library from the locations that belong to the running program.
EnginePlugin& load_engine();

}  // namespace offprof
