#include "cli/plugin/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "traces/base/error.h"

namespace offprof {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  path_ = (std::filesystem::temp_directory_path(error) / "offprof-XXXXXX").string();
  if (error || mkdtemp(path_.data()) == nullptr)
    throw environment_error(fmt::format("cannot create a temporary folder: {}", std::strerror(errno)),
                            "Set TMPDIR to a folder that can be written to.");
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace offprof
