#include "cli/plugin/python_package.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/plugin/engine_loader.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

bool is_program(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
}

bool is_in_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (is_program(std::filesystem::path(folder) / name)) return true;
  return false;
}

}  // namespace

std::string python_package_folder() {
  const std::filesystem::path program = program_folder();
  const std::filesystem::path places[] = {program / "python" / "offprof",
                                          program.parent_path() / "lib" / "offprof" / "python" / "offprof",
                                          program.parent_path()};
  std::error_code error;
  for (const std::filesystem::path& place : places)
    if (std::filesystem::is_regular_file(place / "__init__.py", error)) return place.string();
  throw environment_error(fmt::format("the Python package of offprof is neither in {} nor in {}",
                                      places[0].string(), places[1].string()),
                          "Build offprof again: cmake --preset release && cmake --build --preset release");
}

std::string choose_python(const std::string& given) {
  std::string python = given;
  const char* const environment = std::getenv("VIRTUAL_ENV");
  if (python.empty() && environment != nullptr)
    python = (std::filesystem::path(environment) / "bin" / "python").string();
  if (python.empty()) python = "python3";
  const bool is_there = python.find('/') != std::string::npos ? is_program(python) : is_in_path(python);
  if (is_there) return python;
  throw environment_error(fmt::format("there is no Python at {}", python),
                          "Name the Python that the program runs in: --python PATH");
}

}  // namespace offprof
