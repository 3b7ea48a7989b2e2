#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/plugin.h"

namespace offprof {

/// Where the engine library may lie, best first: beside the program (a build folder), and in `../lib/offprof`
/// (an installation).
std::vector<std::string> engine_places(const std::string& program_folder);

/// The folder that the running program lies in.
std::string program_folder();

/// Where the libraries of the virtual GPU lie: in a folder beside the engine.
std::string virtual_gpu_folder();

/// The first place that holds a file.
std::optional<std::string> find_engine(const std::vector<std::string>& places);

/// Opens the engine library, and LibTorch with it: that takes about a second. It stays open, and owns what is
/// returned. Throws Error (environment): it is in none of the places, this being the small flavour, or it
/// cannot be opened.
EnginePlugin& load_engine(const std::vector<std::string>& places);

/// The same, from where the running program keeps it.
EnginePlugin& load_engine();

}  // namespace offprof
