#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "traces/descriptor.h"
#include "traces/temporary.h"

namespace offprof {

/// Where writing to a path ends up.
struct Destination {
  std::filesystem::path path;  ///< symbolic links followed
  bool direct = false;         ///< a terminal, a pipe, a device: nothing that can be replaced
  bool exists = false;
  mode_t mode = 0;  ///< of what exists
};

/// Throws Error (input) where the path is a folder or may not be written.
Destination find_destination(const std::string& path);

/// A file that is written piece by piece beside the one that it replaces in the end. What was there survives
/// any failure, a kill and a power failure at any instant; no temporary is left but by the last two. Every
/// function throws Error (input), with the reason and what to do, where the disk refuses.
class NewFile {
 public:
  /// `path` may exist and is untouched until commit(). Throws for what cannot be replaced, too.
  explicit NewFile(const std::string& path) : NewFile(path, find_destination(path)) {}
  /// `to` is where `path` ends up.
  NewFile(std::string path, Destination to);

  /// Adds bytes at the end.
  void write(std::string_view bytes);
  /// Syncs, takes the old file's place, and syncs the folder. The last call.
  void commit();

 private:
  [[noreturn]] void refuse(int error) const;

  std::string path_;
  Destination to_;
  Temporary temporary_;
  Descriptor file_;
};

}  // namespace offprof
