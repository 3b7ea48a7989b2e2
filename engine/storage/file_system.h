#pragma once

#include <string>

#include "traces/base/units.h"

namespace offprof {

/// File system of an open file.
struct FileSystem {
  std::string name;        ///< `ext4`; `unknown (0x...)` if offprof does not know it
  bool is_memory = false;  ///< tmpfs and similar: its files take the machine's memory
  Bytes free_bytes = 0;    ///< available to this user
};

FileSystem file_system_of(int fd);

/// Memory and offset alignment that direct I/O needs. 0: the file system does not support it. kDiskAlignment:
/// the kernel does not report it.
struct DirectAlignment {
  Bytes memory = 0;
  Bytes offset = 0;
};

DirectAlignment direct_alignment_of(int fd);

}  // namespace offprof
