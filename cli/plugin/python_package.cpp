#include "cli/plugin/python_package.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/plugin/engine_loader.h"
#include "traces/base/error.h"

namespace offprof {

std::string python_package_folder() {
  const std::filesystem::path program = program_folder();
  const std::filesystem::path places[] = {program / "python" / "offprof",
                                          program.parent_path() / "lib" / "offprof" / "python" / "offprof"};
  std::error_code error;
  for (const std::filesystem::path& place : places)
    if (std::filesystem::is_regular_file(place / "__init__.py", error)) return place.string();
  throw environment_error(fmt::format("the Python package of offprof is neither in {} nor in {}",
                                      places[0].string(), places[1].string()),
                          "Build offprof again: cmake --preset release && cmake --build --preset release");
}

}  // namespace offprof
