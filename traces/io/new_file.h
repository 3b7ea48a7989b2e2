#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "traces/base/descriptor.h"
#include "traces/base/temporary.h"

namespace offprof {

/// File that a write to a path ends up in.
struct Destination {
  std::filesystem::path path;  ///< symbolic links followed
  bool direct = false;         ///< a terminal, a pipe or a device, which cannot be replaced
  bool exists = false;
  mode_t mode = 0;  ///< mode of the existing file
};

/// Finds the file behind `path`. Throws Error (input) if it is a folder or may not be written.
Destination find_destination(const std::string& path);

/// File that is written piece by piece beside the file that it replaces in the end. The old file survives any
/// failure, a kill and a power failure at any time. Only a kill or a power failure can leave a temporary
/// file. Every function throws Error (input), with the reason and a hint, if the disk fails.
class NewFile {
 public:
  /// `path` may exist; it is untouched until commit(). Also throws Error (input) if it cannot be replaced.
  explicit NewFile(const std::string& path) : NewFile(path, find_destination(path)) {}
  /// `to` is the destination of `path`.
  NewFile(std::string path, Destination to);

  /// Appends bytes.
  void write(std::string_view bytes);
  /// Syncs the file, replaces the old file and syncs the folder. Must be the last call.
  void commit();

 private:
  [[noreturn]] void refuse(int error) const;

  std::string path_;
  Destination to_;
  Temporary temporary_;
  Descriptor file_;
};

}  // namespace offprof
