#pragma once

#include <string>

namespace offprof {

/// Folder for temporary files, which is removed with them on destruction.
class ScratchFolder {
 public:
  /// Throws Error (environment) if the system's folder for temporary files cannot be written to.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Returns the path of a file of that name in the folder.
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace offprof
