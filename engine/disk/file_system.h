#pragma once

#include <string>

#include "traces/units.h"

namespace offprof {

/// What an open file lies on.
struct FileSystem {
  std::string name;        ///< `ext4`; `unknown (0x...)` where offprof does not know it
  bool is_memory = false;  ///< tmpfs and the like: its files take the machine's memory
  Bytes free_bytes = 0;    ///< for this user
};

FileSystem file_system_of(int fd);

/// Memory and offset alignment that direct I/O needs, or 0 where the file system does not take it;
/// kDiskAlignment where the kernel does not say.
struct DirectAlignment {
  Bytes memory = 0;
  Bytes offset = 0;
};

DirectAlignment direct_alignment_of(int fd);

}  // namespace offprof
