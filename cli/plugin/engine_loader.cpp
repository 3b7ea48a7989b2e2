#include "cli/plugin/engine_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "traces/base/error.h"

namespace offprof {
namespace {

using EngineFunction = EnginePlugin* (*)();

Error no_engine(const std::vector<std::string>& places) {
  return environment_error(
      fmt::format("this build of offprof has no engine: the library {} is not in {}", kEnginePluginLibrary,
                  std::filesystem::path(places.front()).parent_path().string()),
      "The engine trains models with LibTorch. To build it, run in offprof's source folder: "
      "scripts/setup.sh && cmake --preset release && cmake --build --preset release");
}

Error broken_engine(const std::string& path, const std::string& reason) {
  return environment_error(fmt::format("cannot open the engine library {}: {}", path, reason),
                           "Run `offprof doctor` to see what is missing and how to fix it.");
}

}  // namespace

std::vector<std::string> engine_places(const std::string& program_folder) {
  const std::filesystem::path folder(program_folder);
  return {(folder / kEnginePluginLibrary).string(),
          (folder.parent_path() / "lib" / "offprof" / kEnginePluginLibrary).string(),
          (folder.parent_path() / kEnginePluginLibrary).string()};
}

std::string program_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::string virtual_gpu_folder() {
  const auto places = engine_places(program_folder());
  const auto engine = std::filesystem::path(find_engine(places).value_or(places.front()));
  return (engine.parent_path() / "virtual_gpu").string();
}

std::optional<std::string> find_engine(const std::vector<std::string>& places) {
  std::error_code error;
  for (const std::string& place : places) {
    if (std::filesystem::is_regular_file(place, error)) return place;
  }
  return std::nullopt;
}

EnginePlugin& load_engine(const std::vector<std::string>& places) {
  const auto path = find_engine(places);
  if (!path) throw no_engine(places);
  void* library = dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw broken_engine(*path, dlerror());
  const auto function = reinterpret_cast<EngineFunction>(dlsym(library, kEnginePluginSymbol));
  if (function == nullptr)
    throw broken_engine(*path, fmt::format("it has no symbol {}", kEnginePluginSymbol));
  EnginePlugin* engine = function();
  if (engine == nullptr) throw broken_engine(*path, "it provides no engine");
  return *engine;
}

EnginePlugin& load_engine() {
  return load_engine(engine_places(program_folder()));
}

}  // namespace offprof
