#include "cli/doctor/library_origin.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

namespace offprof {
namespace {

namespace fs = std::filesystem;

/// Returns the prefix of the Python whose packages are in `packages`: `PREFIX/lib/python3.11/site-packages`.
std::string prefix_of(const fs::path& packages) {
  return packages.parent_path().parent_path().parent_path().string();
}

}  // namespace

std::string library_origin(const std::string& path) {
  fs::path folder;
  for (const fs::path& part : fs::path(path).parent_path()) {
    folder /= part;
    const std::string name = part.string();
    if (name == ".deps") return "installed by scripts/setup.sh";
    if (name == "site-packages") return fmt::format("of the Python in {}", prefix_of(folder));
    if (name == "dist-packages") return "of the system's Python";
    if (name.starts_with("libtorch")) return fmt::format("of the LibTorch archive in {}", folder.string());
    if (name == "cuda" || name.starts_with("cuda-"))
      return fmt::format("of the CUDA Toolkit in {}", folder.string());
  }
  return path.starts_with("/usr/lib") || path.starts_with("/lib") ? "of the system" : "";
}

}  // namespace offprof
